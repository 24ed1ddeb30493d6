"""Files that are written whole or not at all, whatever stands at their name before."""

import errno
import os
import stat
import threading

import pytest

from maxmargin.formats import write_atomically, write_text_atomically
from maxmargin.formats.writing import check_writable

posix = pytest.mark.skipif(os.name == "nt", reason="files of Windows are different")


def write(path, content=b"new"):
    with write_atomically(path) as stream:
        stream.write(content)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_files_obey_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == 0o666 & ~mask


@posix
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o755])
def test_a_replaced_file_hands_down_its_permissions(tmp_path, permissions):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(permissions)
    write(path)
    assert mode(path) == permissions and path.read_text() == "new"


@posix
def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write(link)
    assert link.is_symlink() and real.read_text() == "new"
    real.unlink()
    write(link, b"again")
    assert link.is_symlink() and real.read_text() == "again"
    assert os.listdir(tmp_path / "folder") == ["real"]


@posix
def test_pipes_are_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    check_writable(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join(timeout=10)
    assert found == [b"new"] and stat.S_ISFIFO(os.stat(path).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_open_descriptors_are_written_to_where_they_stand(tmp_path):
    path = tmp_path / "a"
    with open(path, "wb") as stream:
        stream.write(b"before ")
        stream.flush()
        name = f"/dev/fd/{stream.fileno()}"
        check_writable(name)
        write(name)
        stream.write(b" after")
    assert path.read_bytes() == b"before new after"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named():
    with pytest.raises(OSError) as caught:
        write("/dev/full", bytes(100_000))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")


@posix
def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for attempt in (check_writable, write):
        with pytest.raises(OSError) as caught:
            attempt(tmp_path / "loop")
        assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "loop").is_symlink()


def test_long_names_are_those_of_the_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for attempt in (check_writable, write):
        with pytest.raises(OSError) as caught:
            attempt("a" * 300)
        assert caught.value.errno == errno.ENAMETOOLONG and caught.value.filename == "a" * 300


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("write_more", [write_atomically, write_text_atomically])
def test_errors_name_the_file_and_leave_nothing_behind(tmp_path, monkeypatch, step, write_more):
    path = tmp_path / "model.mm"
    path.write_text("old")

    def fail(first, *_):
        raise OSError(
            errno.ENOSPC, "No space left on device", *([first] if step != "fsync" else [])
        )

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError) as caught, write_more(path):
        pass
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["model.mm"]


def test_errors_of_the_block_keep_their_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, write_atomically(tmp_path / "a"):
        open(tmp_path / "absent")
    assert caught.value.filename == str(tmp_path / "absent")
    with pytest.raises(KeyboardInterrupt), write_text_atomically(tmp_path / "a.gz") as stream:
        stream.write("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_written_is_told_before(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    for path, message in [
        (tmp_path / "no" / "a", "there is no folder"),
        (tmp_path / "folder", "Is a directory"),
        (f"{tmp_path}/new/", "Is a directory"),
        ("", "name of the file is empty"),
    ]:
        for attempt in (check_writable, write):
            with pytest.raises(OSError, match=message) as caught:
                attempt(path)
            assert caught.value.filename == str(path)
    check_writable(tmp_path / ("long" * 60))
    path = tmp_path / "protected"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for attempt in (check_writable, write):
        with pytest.raises(PermissionError) as caught:
            attempt(path)
        assert caught.value.filename == str(path)
    monkeypatch.undo()

    def refuse(name, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(name))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        check_writable(tmp_path / "a")
    assert caught.value.filename == str(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == ["folder", "protected"]


def test_a_character_without_bytes_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.txt: 'ü' cannot be written in ascii"):
        with write_text_atomically(tmp_path / "a.txt", "ascii") as stream:
            stream.write("xü")
    with pytest.raises(ValueError, match="unknown text encoding 'klingon'"):
        with write_text_atomically(tmp_path / "a.txt", "klingon"):
            pass
    assert os.listdir(tmp_path) == []
