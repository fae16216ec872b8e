#!/usr/bin/env python3
"""plot.py URL MINUTES FILE: draws the board of dashboard.json from what a Prometheus at URL has of the last minutes, as one SVG.

For a look at the board where there is no Grafana. It needs nothing but Python, and knows what the board uses: time series and numbers."""

import html
import json
import pathlib
import sys
import time
import urllib.parse
import urllib.request

COLOURS = ["#2f6db3", "#d9822b", "#3c9a5f", "#b8423f", "#7a5aa6", "#7f7f7f", "#b59a2b", "#2aa3a3", "#a3598c", "#555555"]
COLUMN, ROW = 50, 30


def ask(url, query, minutes):
    """The series of a query: labels and (time, value) pairs."""
    now = time.time()
    step = max(1, minutes * 60 // 240)
    arguments = urllib.parse.urlencode(
        {"query": query, "start": now - minutes * 60, "end": now, "step": step})
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{arguments}") as answer:
        result = json.load(answer)["data"]["result"]
    return [(series["metric"], [(float(t), float(v)) for t, v in series["values"]]) for series in result]


def pieces(points, longest):
    """Parts of a series between times at which it is not there."""
    parts = []
    for point in points:
        if parts and point[0] - parts[-1][-1][0] <= longest:
            parts[-1].append(point)
        else:
            parts.append([point])
    return parts


def expand(text, labels):
    for name, value in labels.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def spell(value, unit):
    if unit == "bytes":
        for name in ("B", "KiB", "MiB", "GiB"):
            if abs(value) < 1024 or name == "GiB":
                return f"{value:.3g} {name}"
            value /= 1024
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    return f"{value:.3g}" + {"s": " s", "ops": "/s", "rowsps": " rows/s"}.get(unit, "")


def series_of(panel, url, minutes):
    found = []
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", "20s").replace("$instance", ".*").replace("$view", ".*")
        found += [(expand(target["legendFormat"], labels), points) for labels, points in ask(url, query, minutes)]
    return found


def draw_lines(found, unit, width, height, start, end):
    values = [value for _, points in found for _, value in points]
    low, high = min(values + [0]), max(values + [0])
    high = high if high > low else low + 1
    left, top, right, bottom = 62, 26, width - 8, height - 34
    x = lambda t: left + (t - start) / (end - start) * (right - left)
    y = lambda v: bottom - (v - low) / (high - low) * (bottom - top)
    parts = []
    for share in (0, 0.5, 1):
        value = low + share * (high - low)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 4}" y="{y(value) + 3:.1f}" text-anchor="end" class="s">{spell(value, unit)}</text>')
    for number, (name, points) in enumerate(found):
        colour = COLOURS[number % len(COLOURS)]
        for piece in pieces(points, (end - start) / 100):
            path = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in piece)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-linecap="round"/>')
        parts.append(f'<text x="{left + (number % 4) * 95}" y="{height - 18 + number // 4 * 11}" fill="{colour}" class="s">{html.escape(name[:16])}</text>')
    return "".join(parts)


def draw(panel, url, minutes):
    place, unit = panel["gridPos"], panel["fieldConfig"]["defaults"]["unit"]
    width, height = place["w"] * COLUMN - 8, place["h"] * ROW - 8
    found = series_of(panel, url, minutes)
    parts = [f'<rect width="{width}" height="{height}" fill="#fff" stroke="#ccc"/>',
             f'<text x="8" y="17" class="t">{html.escape(panel["title"])}</text>']
    if not found:
        parts.append(f'<text x="{width / 2}" y="{height / 2 + 8}" text-anchor="middle" class="s">no series</text>')
    elif panel["type"] == "stat":
        text = "  ".join(f"{spell(points[-1][1], unit)} {name}" for name, points in found)
        parts.append(f'<text x="8" y="{height / 2 + 14}" class="{"n" if len(found) == 1 else "t"}">{html.escape(text)}</text>')
    else:
        now = time.time()
        parts.append(draw_lines(found, unit, width, height, now - minutes * 60, now))
    return f'<g transform="translate({place["x"] * COLUMN + 4} {place["y"] * ROW + 4})">{"".join(parts)}</g>'


def main():
    url, minutes, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    board = json.loads(pathlib.Path(__file__).with_name("dashboard.json").read_text())
    panels = board["panels"]
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels) * ROW
    style = "text{font-family:sans-serif}.s{font-size:9px}.t{font-size:12px;font-weight:bold}.n{font-size:26px}"
    drawn = "".join(draw(panel, url, minutes) for panel in panels)
    pathlib.Path(file).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * COLUMN} {height}" width="{24 * COLUMN}" height="{height}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#f4f4f4"/>{drawn}</svg>\n')


main()
