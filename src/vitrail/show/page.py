"""The page around a report: one file, no scripts, nothing loaded from elsewhere, readable on a phone and on paper."""

from __future__ import annotations

import html

STYLE = """
:root { --ink: #1f2933; --soft: #5c6873; --rule: #d5dbe1; --tint: #f5f7f9; --glass: #2f5d8c; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: #fff; color: var(--ink); line-height: 1.5;
  font: 16px/1.5 -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 0.4rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
p { margin: 0.4rem 0 0.8rem; max-width: 46rem; }
.label { border: 2px solid var(--ink); border-radius: 4px; padding: 0.9rem 1.1rem; max-width: 46rem; }
.label h2 { margin: 0; padding: 0 0 0.3rem; border: 0; border-bottom: 6px solid var(--ink); font-size: 1.15rem; }
.label dl { margin: 0; }
.label .line { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: 0.4rem 0; border-bottom: 1px solid var(--rule); }
.label dt { font-weight: 600; flex: 0 0 8.5rem; }
.label dd { margin: 0; flex: 1 1 13rem; overflow-wrap: anywhere; }
.label .big { font-size: 1.35rem; font-weight: 700; line-height: 1.3; }
.label details { margin-top: 0.6rem; }
.label ul { margin: 0.4rem 0 0; padding-left: 1.1rem; font-size: 0.92rem; }
.pictures { columns: 19rem; column-gap: 1.8rem; margin-top: 0.8rem; }
.pictures.wide { columns: auto; max-width: 46rem; }
.card { margin: 1.2rem 0 0; padding: 0.9rem 1rem 0; border: 1px solid var(--rule); border-radius: 4px; break-inside: avoid; }
.card h3 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
.card > p { margin: 0.1rem 0 0.6rem; color: var(--soft); font-size: 0.92rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: 0 1.8rem; }
.pair figure { max-width: 32rem; }
.pair figcaption { font-weight: 400; color: var(--soft); }
figure { margin: 0; padding-bottom: 1.4rem; break-inside: avoid; }
figure img { width: 100%; height: auto; display: block; }
figcaption { font-weight: 600; font-size: 0.95rem; overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--glass); font-size: 0.88rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.92rem; margin: 0.4rem 0; }
th, td { text-align: left; padding: 0.3rem 1.1rem 0.3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { font-weight: 600; color: var(--soft); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.85rem; border-top: 1px solid var(--rule); padding-top: 0.6rem; }
code { font-size: 0.85em; overflow-wrap: anywhere; }
@media print {
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  .pictures { columns: 3; column-gap: 1rem; }
  .pair { grid-template-columns: 1fr 1fr; gap: 0 1rem; }
  .pictures details, .pair details { display: none; }
  h2 { break-after: avoid; }
  .label, tr { break-inside: avoid; }
}
"""


def html_text(text: object) -> str:
    """Any value as text that is safe inside a page, quotes included.

    Examples
    --------
    >>> html_text("<b>&")
    '&lt;b&gt;&amp;'
    """
    return html.escape(str(text), quote=True)


def page(title: str, body: str, *, language: str = "en") -> str:
    """A whole page. Its own policy forbids it to load or run anything."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="{html_text(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{html_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def table(header: tuple[str, ...], rows: tuple[tuple[str, ...], ...], numeric: tuple[int, ...] = ()) -> str:
    """A table that scrolls sideways by itself where a screen is narrow."""

    def cells(tag: str, texts: tuple[str, ...]) -> str:
        opened = [f'<{tag} class="number">' if place in numeric else f"<{tag}>" for place in range(len(texts))]
        return "".join(f"{start}{html_text(text)}</{tag}>" for start, text in zip(opened, texts, strict=True))

    head = f"<thead><tr>{cells('th', header)}</tr></thead>"
    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>\n{head}\n<tbody>\n{body}\n</tbody></table></div>'
