"""The tables and figures of five papers, run again: ``python -m benchmarks papers``.

One module per paper, one function per table or figure. Each returns an `Exhibit`: our figures beside
the printed ones, curves, and the paper's claims with a verdict. An exhibit is recorded as JSON in
``recorded/``; the pages in ``docs/papers/`` and their pictures are made from these files alone.
"""

#: Name on the command line, and module.
PAPERS = {
    "tsochantaridis-2005": ".tsochantaridis_2005",
    "joachims-2009": ".joachims_2009",
    "lee-jang-2010": ".lee_jang_2010",
    "chang-yih-2013": ".chang_yih_2013",
    "franc-2014": ".franc_2014",
}
