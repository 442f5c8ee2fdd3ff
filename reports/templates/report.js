"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const config = { responsive: true, displayModeBar: false, plotlyServerURL: "" };
  const plots = [];

  // Text and grid follow the page's scheme, light or dark; the colours of the data are the same in both.
  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const card = style.getPropertyValue("--card").trim();
    const grid = style.getPropertyValue("--grid").trim();
    const flat = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", "font.color": ink,
      "font.family": getComputedStyle(document.body).fontFamily, "font.size": 12,
      "hoverlabel.bgcolor": card, "hoverlabel.bordercolor": grid, "hoverlabel.font.color": ink };
    for (const axis of ["xaxis", "yaxis", "yaxis2", "yaxis3"]) {
      flat[axis + ".gridcolor"] = grid;
      flat[axis + ".linecolor"] = grid;
      flat[axis + ".zeroline"] = false;
    }
    return flat;
  };

  // Writes "a.b": v into {a: {b: v}}, only where the layout has that axis already.
  const themed = (layout) => {
    const result = structuredClone(layout);
    for (const [path, value] of Object.entries(theme())) {
      const [first, ...rest] = path.split(".");
      if (/axis/.test(first) && !(first in result)) continue;
      if (!rest.length) { result[first] = value; continue; }
      let place = (result[first] ??= {});
      for (const name of rest.slice(0, -1)) place = (place[name] ??= {});
      place[rest.at(-1)] = value;
    }
    return result;
  };

  // Zooming into one plot zooms all of them to the same stretch of time.
  let following = false;
  const follow = (source) => source.on("plotly_relayout", (change) => {
    if (following) return;
    const all = change["xaxis.autorange"];
    const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (!all && (from === undefined || to === undefined)) return;
    following = true;
    const range = all ? page.range : [from, to];
    Promise.all(plots.map((plot) => Plotly.relayout(plot, { "xaxis.range": [...range] })))
      .finally(() => { following = false; });
  });

  const draw = (place, data, layout) => Plotly.newPlot(place, data, themed(layout), config)
    .then(() => { plots.push(place); follow(place); });

  const waiting = Object.entries(page.figures)
    .map(([name, figure]) => draw(document.getElementById("plot-" + name), figure.data, figure.layout));

  const chooser = document.getElementById("partition");
  if (chooser) {
    const place = document.getElementById("plot-partition");
    const layout = () => {
      const fresh = themed(page.partition_layout);
      if (place.layout) fresh.xaxis.range = [...place.layout.xaxis.range];
      return fresh;
    };
    waiting.push(draw(place, page.partitions[chooser.value], layout()));
    chooser.addEventListener("change", () =>
      Plotly.react(place, page.partitions[chooser.value], layout(), config));
  }
  page.range = page.partition_layout.xaxis.range;

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const plot of plots) {
      const change = Object.entries(theme())
        .filter(([path]) => !/axis/.test(path) || path.split(".")[0] in plot.layout);
      Plotly.relayout(plot, Object.fromEntries(change));
    }
  });
  Promise.all(waiting).then(() => { document.body.dataset.drawn = String(plots.length); });
})();
