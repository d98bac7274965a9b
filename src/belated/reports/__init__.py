"""Reports as one HTML page, with figures as PNG and SVG, and the numbers of each figure as CSV."""

from belated.cells import Table
from belated.reports.charts import Figure, bars, columns_of, intervals, lines, strip
from belated.reports.pages import Page, Section, write

__all__ = ["Figure", "Page", "Section", "Table", "bars", "columns_of", "intervals", "lines", "strip", "write"]
