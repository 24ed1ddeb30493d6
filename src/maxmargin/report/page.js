"use strict";
// Controls of a report: colours, tables that sort, examples that unfold. Nothing is fetched.
const root = document.documentElement;
const themeButton = document.getElementById("theme");
themeButton.addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

function sortBy(table, column, header) {
  const rising = header.getAttribute("aria-sort") === "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const key = (row) => {
    const cell = row.cells[column];
    const number = Number(cell.dataset.value ?? cell.textContent);
    return Number.isNaN(number) ? cell.textContent : number;
  };
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const both = typeof x === "number" && typeof y === "number";
    return both ? x - y : String(x).localeCompare(String(y));
  };
  const rows = Array.from(table.tBodies[0].rows).sort(order);
  if (!rising) rows.reverse();
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
    header.tabIndex = 0;
    header.title = "sort";
    header.addEventListener("click", () => sortBy(table, column, header));
    header.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sortBy(table, column, header);
      }
    });
  });
}

for (const button of document.querySelectorAll("button.more")) {
  button.addEventListener("click", () => {
    for (const hidden of button.parentElement.querySelectorAll("[hidden]")) hidden.hidden = false;
    button.remove();
  });
}
