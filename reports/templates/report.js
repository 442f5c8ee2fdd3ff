"use strict";
// The partition whose replicas are shown.
(() => {
  const chooser = document.getElementById("partition");
  if (!chooser) return;
  const choices = [...document.querySelectorAll("[data-partition]")];
  const choose = () => {
    for (const choice of choices) choice.hidden = choice.dataset.partition !== chooser.value;
  };
  chooser.addEventListener("change", choose);
  choose();
})();

// The chosen time: a line in all charts, the state of every broker, and zooming around it.
(() => {
  const source = document.getElementById("states");
  if (!source) return;
  const known = JSON.parse(source.textContent);
  const slider = document.getElementById("time");
  const rows = document.getElementById("states-now");
  const style = document.body.style;
  const duration = Number(style.getPropertyValue("--duration"));
  const range = { from: 0, span: duration };
  const MOST_NAMES = 8;

  const last = (changes, time) => changes.filter(([start]) => start <= time).at(-1);
  const inForce = (spans, time) => spans.filter(([start, stop]) => start <= time && time < stop);
  const listed = (names) => names.length <= MOST_NAMES ? names.join(", ")
    : `${names.slice(0, MOST_NAMES).join(", ")} and ${names.length - MOST_NAMES} more`;

  const describe = (broker, time) => {
    const name = `broker-${broker}`;
    const down = inForce(known.down[broker] ?? [], time).length > 0;
    const term = inForce(known.terms, time).find(([, , node]) => node === broker);
    const led = known.partitions.filter((each) => last(each.led, time)?.[1] === broker);
    const isr = known.partitions.filter((each) => last(each.isr, time)?.[1].includes(broker));
    const faults = inForce(known.faults, time).filter(([, , , targets]) => targets.includes(name));
    return [
      name, down ? "down" : "runs", term ? `epoch ${term[3]}` : "–",
      led.length ? `${led.length}: ${listed(led.map((each) => `${each.name} (epoch ${last(each.led, time)[2]})`))}` : "–",
      isr.length ? `${isr.length} of ${known.partitions.length}` : "–",
      faults.map(([, , fault]) => fault).join(", ") || "–",
    ];
  };

  const show = () => {
    const time = Number(slider.value);
    style.setProperty("--now", time);
    document.getElementById("time-text").textContent = `${time.toFixed(3)} s`;
    slider.setAttribute("aria-valuetext", `${time.toFixed(3)} seconds`);
    rows.replaceChildren(...known.brokers.map((broker) => {
      const row = document.createElement("tr");
      for (const text of describe(broker, time)) row.insertCell().textContent = text;
      row.cells[0].className = "fixed";
      row.cells[3].className = "broad";
      return row;
    }));
  };

  const ticks = () => {
    const power = 10 ** Math.floor(Math.log10(range.span / 10));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => range.span / each <= 10.01);
    const numbers = [];
    for (let n = Math.ceil(range.from / step - 1e-9); n * step <= range.from + range.span + 1e-9; n += 1) numbers.push(n);
    const make = (n) => {
      const tick = document.createElement("span");
      tick.className = "tick";
      tick.style.left = `${100 * n * step / duration}%`;
      tick.textContent = String(Number((n * step).toPrecision(10)));
      return tick;
    };
    for (const axis of document.querySelectorAll(".chart:not(.own-time) .axis .canvas")) axis.replaceChildren(...numbers.map(make));
  };

  const zoom = (span) => {
    range.span = Math.min(duration, Math.max(span, duration / 500));
    range.from = Math.min(duration - range.span, Math.max(0, Number(slider.value) - range.span / 2));
    style.setProperty("--from", range.from);
    style.setProperty("--span", range.span);
    slider.min = range.from;
    slider.max = range.from + range.span;
    slider.step = range.span / 2000;
    ticks();
    show();
  };
  const factors = { in: 0.5, out: 2, all: Infinity };
  for (const button of document.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () => zoom(range.span * factors[button.dataset.zoom]));

  const look = (event) => {
    if (!event.buttons) return;
    const box = event.currentTarget.getBoundingClientRect();
    slider.value = range.from + range.span * (event.clientX - box.left) / box.width;
    show();
  };
  for (const area of document.querySelectorAll(".chart:not(.own-time) .area"))
    for (const kind of ["pointerdown", "pointermove"]) area.addEventListener(kind, look);

  slider.addEventListener("input", show);
  for (const part of document.querySelectorAll(".slider, .states")) part.hidden = false;
  document.body.classList.add("live");
  show();
})();
