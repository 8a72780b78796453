"""How the page looks, on screens and on paper."""

STYLE = """
body { margin: 0; background: #f6f8fa; color: #1f2328;
  font: 15px/1.5 -apple-system, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 2rem 2.5rem 4rem; background: #fff; }
h1 { font-size: 1.9rem; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; margin: 0 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p, ul, ol { margin: .4rem 0 .7rem; }
a { color: #0969da; text-decoration: none; }
a:hover { text-decoration: underline; }
nav { margin: 1.5rem 0; padding: .6rem 1rem; border: 1px solid #d0d7de; border-radius: 6px; }
nav ol { margin: 0; padding-left: 1.6rem; }
nav span { color: #59636e; font-size: .85rem; margin-left: .4rem; }
section { margin-top: 2.5rem; padding-top: 1.8rem; border-top: 1px solid #d0d7de; }
section > p { max-width: 52rem; }
figure { margin: 1.2rem 0; text-align: center; }
img { max-width: 100%; max-height: 46rem; }
h4 { font-size: .9rem; margin: 1.2rem 0 .4rem; }
.wide { overflow-x: auto; margin: 0 0 1.2rem; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
thead { border-top: 1.5px solid; border-bottom: 1px solid; }
tbody { border-bottom: 1.5px solid; }
th { font-weight: 600; vertical-align: bottom; }
th, td { padding: .2rem .5rem; text-align: right; }
td { white-space: nowrap; }
.word { text-align: left; }
th.paper, td.paper { background: #fff3e6; }
ul { padding-left: 1.3rem; }
ul.many { columns: 2; column-gap: 2.5rem; font-size: .88rem; }
li { break-inside: avoid; }
code { font: .88em ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { font: .82rem/1.45 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  background: #f6f8fa; border: 1px solid #d0d7de; border-radius: 6px; padding: .6rem .9rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.files { font-size: .85rem; color: #59636e; }
p.failed { padding: .6rem .9rem; background: #ffebe9; border-left: 4px solid #cf222e; }
nav span.failed { color: #cf222e; font-weight: 600; }
p.left-out { padding: .6rem .9rem; background: #fff8c5; border-left: 4px solid #bf8700; }
@media screen and (max-width: 48rem) { main { padding: 1rem; } ul.many { columns: 1; } }
@page { size: A4; margin: 16mm 14mm; }
@media print {
  body { background: none; font-size: 9.5pt; }
  main { max-width: none; padding: 0; }
  section { break-before: page; border: 0; margin: 0; padding: 0; }
  ul.many { font-size: 8.5pt; }
  h2 { font-size: 14pt; }
  h3, h4 { font-size: 10pt; margin-top: .8rem; }
  figure { margin: .6rem 0; }
  h2, h3, h4 { break-after: avoid; }
  figure, pre, tr { break-inside: avoid; }
  img { max-height: 105mm; max-width: 92%; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .35rem; }
  .wide { overflow: visible; }
  th.paper, td.paper, pre, p.failed, p.left-out { print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  a { color: inherit; }
  .files { display: none; }
}
"""
