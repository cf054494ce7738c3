// The table and the curve of the section on thresholds follow the slider, the class and the environment.
"use strict";
{
  const slider = document.getElementById("threshold");
  const data = JSON.parse(document.getElementById("threshold-counts").textContent);
  const classes = document.getElementById("threshold-class");
  const environments = document.getElementById("threshold-environment");
  const chart = document.getElementById("chart-decision");

  const share = (part, of) => (of ? `${((100 * part) / of).toFixed(1)} %\n${part} of ${of}` : "–");
  const benefit = (tp, fp, n, percent) => (tp - (fp * percent) / (100 - percent)) / n;
  const number = (value) => (Math.abs(value) < 0.0005 ? 0 : value).toFixed(3).replace("-", "−");

  const chosen = () => data.counts[classes ? Number(classes.value) : 0];
  const percents = Array.from({ length: 99 }, (_, j) => j + 1);

  function fillTable() {
    const t = Number(slider.value);
    document.getElementById("threshold-shown").textContent = `${t} %`;
    const rows = document.querySelectorAll("#threshold-table tbody tr");
    chosen().forEach((c, j) => {
      const [tp, fp, n] = [c.tp[t], c.fp[t], c.positive + c.negative];
      const texts = [
        share(tp + fp, n),
        share(tp, c.positive),
        share(c.negative - fp, c.negative),
        share(tp, tp + fp),
        share(c.negative - fp, n - tp - fp),
        number(benefit(tp, fp, n, t)),
      ];
      rows[j].querySelectorAll("td").forEach((cell, i) => (cell.textContent = texts[i]));
    });
    Plotly.relayout(chart, { "shapes[0].x0": t, "shapes[0].x1": t });
  }

  function drawCurves() {
    const c = chosen()[Number(environments.value)];
    const n = c.positive + c.negative;
    const top = Math.max(c.positive / n, 0.01);
    const curves = [
      percents.map((t) => benefit(c.tp[t], c.fp[t], n, t)),
      percents.map((t) => benefit(c.positive, c.negative, n, t)),
      percents.map(() => 0),
    ];
    Plotly.update(chart, { y: curves, x: curves.map(() => percents) }, { "yaxis.range": [-0.25 * top, 1.1 * top] });
  }

  slider.addEventListener("input", fillTable);
  environments.addEventListener("change", drawCurves);
  if (classes) classes.addEventListener("change", () => { fillTable(); drawCurves(); });
  // A browser may keep the slider where it was before the page was loaded again.
  fillTable();
  drawCurves();
}
