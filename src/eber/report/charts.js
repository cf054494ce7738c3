// Draws every chart of the page from the JSON beside it.
"use strict";
for (const slot of document.querySelectorAll(".chart")) {
  const spec = JSON.parse(document.querySelector(`script[data-for="${slot.id}"]`).textContent);
  const small = slot.closest(".panels") !== null;
  Plotly.newPlot(slot, spec.data, spec.layout, {
    responsive: true,
    displaylogo: false,
    displayModeBar: small ? false : undefined,
    modeBarButtons: [["toImage", "zoom2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg", filename: slot.id },
  });
}
