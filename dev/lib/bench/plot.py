"""Draws bars as SVG, for light and dark screens, without any library."""

import math
from html import escape

# Pixels. The width of a letter is an estimate, because the reader's fonts are unknown.
ROW, BAR, PLOT, EDGE, HEAD, FOOT, LETTER = 36, 22, 440, 16, 48, 76, 7.4
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1c2127 }
  .title { font-size: 17px; font-weight: 600 }
  .ground { fill: #ffffff }
  .grid { stroke: #d5dae0 }
  .bar { fill: #2a66a8 }
  .inside { fill: #ffffff }
  .mark { stroke: #c2410c; stroke-width: 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ed }
    .ground { fill: #14181d }
    .grid { stroke: #3a424c }
    .bar { fill: #7db3ea }
    .inside { fill: #0d1115 }
    .mark { stroke: #ff9d6c }
  }
"""


def ticks(most):
    """Round numbers from 0 to at least `most`, at most seven of them."""
    power = 10 ** math.floor(math.log10(most)) if most > 0 else 1
    step = next(step for step in (power / 5, power / 2, power, power * 2) if most / step <= 6)
    return [number * step for number in range(math.ceil(most / step) + 1)]


def svg(title, unit, form, bars, mark):
    """Horizontal bars.

    `bars` has the label and the value of each bar, and the value of its mark or None. Marks with the same value form a line. `mark` says
    what a mark is. `form` formats values. `unit` is below the axis.
    """
    axis = ticks(max(max(value, limit or 0) for _, value, limit in bars))
    left = EDGE + LETTER * max(len(label) for label, _, _ in bars) + 18
    width = round(max(left + PLOT + 90, 2 * EDGE + 9 * len(title)))
    bottom = HEAD + ROW * len(bars)

    def x(value):
        return round(left + value / axis[-1] * PLOT, 1)

    words = "; ".join(f"{label}: {form.format(value)}" + ("" if limit is None else f" ({mark}: {form.format(limit)})")
                      for label, value, limit in bars)
    parts = [f'<rect class="ground" width="{width}" height="{bottom + FOOT}" rx="6"/>',
             f'<text class="title" x="{EDGE}" y="30">{escape(title)}</text>']
    for tick in axis:
        parts.append(f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="{HEAD}" y2="{bottom}"/>')
        parts.append(f'<text x="{x(tick)}" y="{bottom + 20}" text-anchor="middle">{tick:,.10g}</text>')
    parts.append(f'<text x="{x(axis[-1] / 2)}" y="{bottom + 42}" text-anchor="middle">{escape(unit)}</text>')
    for number, (label, value, limit) in enumerate(bars):
        top = HEAD + ROW * number
        text, end = form.format(value), x(value)
        parts.append(f'<text x="{round(left - 10, 1)}" y="{top + 23}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect class="bar" x="{x(0)}" y="{top + (ROW - BAR) / 2:g}" width="{round(end - x(0), 1)}" height="{BAR}"/>')
        needed = LETTER * len(text) + 14
        covered = limit is not None and end - needed < x(limit) < end - 4
        if end - x(0) > needed and not covered:
            parts.append(f'<text class="inside" x="{end - 7:g}" y="{top + 23}" text-anchor="end">{escape(text)}</text>')
        else:
            after = max(end, x(limit)) if limit is not None and x(limit) < end + needed else end
            parts.append(f'<text x="{after + 7:g}" y="{top + 23}">{escape(text)}</text>')
        if limit is not None:
            parts.append(f'<line class="mark" x1="{x(limit)}" x2="{x(limit)}" y1="{top}" y2="{top + ROW}"/>')
    if any(limit is not None for _, _, limit in bars):
        y = bottom + 62
        parts.append(f'<line class="mark" x1="{EDGE + 4}" x2="{EDGE + 4}" y1="{y - 13}" y2="{y + 3}"/>')
        parts.append(f'<text x="{EDGE + 14}" y="{y}">{escape(mark)}</text>')
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + FOOT}" width="{width}" height="{bottom + FOOT}" '
            f'role="img" aria-labelledby="title words">\n<title id="title">{escape(title)}</title>\n<desc id="words">{escape(words)}</desc>\n'
            f"<style>{STYLE}</style>\n{body}\n</svg>\n")
