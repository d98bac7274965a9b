// The chart of probabilities over time. uPlot is a global of its own script.

import { byId, el, write } from "/static/dom.js";
import { colour, dash, paint } from "/static/colours.js";
import { axisWords, percent } from "/static/words.js";

const HEIGHT = 260;
const BURST = 10; // seconds. The chart of a shorter history counts decisions instead of time
let chart = null;
let shape = ""; // what the chart was built for. New data of the same shape only moves the lines

export function showHistory({ drawn, retired, others, rest }, { arms, history, decisions }) {
  const isEmpty = history.at.length < 2 || drawn.length === 0;
  byId("history-figure").hidden = isEmpty;
  if (isEmpty) return;
  const byTime = history.at.at(-1) - history.at[0] >= BURST;
  const rows = new Map(arms.map((arm, index) => [arm.name, history.probabilities[index]]));
  const lines = [...drawn, ...retired].map(({ name, probability }) => ({ name, values: [...rows.get(name), probability] }));
  const hidden = [...others.map(({ name }) => rows.get(name)), history.others].filter((row) => row !== null);
  const present = others.reduce((sum, arm) => sum + arm.probability, rest?.probability ?? 0);
  if (others.length > 0) lines.push({ name: "Others", values: [...sumOf(hidden), present] });
  const data = [withNow(byTime ? history.at : history.round, byTime ? 0 : decisions + 1), ...lines.map((line) => line.values)];
  const wanted = JSON.stringify([byTime, lines.map(({ name }) => name)]);
  if (wanted !== shape) build(byTime, lines, data);
  else chart.setData(data);
  shape = wanted;
  writeLegend();
}

/** The history is thinned out, so its last point is not new. The chart ends with the present, as the bars have it. */
function withNow(moments, next) {
  const last = moments.at(-1);
  return [...moments, Math.max(next, last + (last - moments[0]) / 500)];
}

function sumOf(rows) {
  return rows[0].map((_, point) => rows.reduce((sum, row) => sum + (row[point] ?? 0), 0));
}

function build(byTime, lines, data) {
  chart?.destroy();
  byId("history-legend").replaceChildren(...lines.map(legendEntry));
  write(byId("history-title"), byTime ? "Over time" : "Decision by decision");
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: () => ink("--quiet"), grid: { stroke: () => ink("--line"), width: 1 }, ticks: { show: false } };
  const font = "12px system-ui, sans-serif";
  const options = {
    width: chartWidth(),
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false }, points: { size: 7 } },
    scales: { x: { time: byTime }, y: { range: (_, __, highest) => [0, Math.min(1, Math.ceil(highest * 10 + 0.3) / 10)] } },
    axes: [
      { ...axis, font, space: 90, ...(byTime ? { values: (_, ticks, __, ___, step) => axisWords(ticks, step) } : {}) },
      { ...axis, font, size: 46, values: (_, ticks) => ticks.map((tick) => `${Math.round(100 * tick)}%`) },
    ],
    series: [{}, ...lines.map(({ name }) => ({ stroke: () => paint(name), dash: dash(name), width: 2, points: { show: false } }))],
    hooks: { setCursor: [writeLegend] },
  };
  chart = new uPlot(options, data, byId("history"));
}

function legendEntry({ name }) {
  const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  line.setAttribute("viewBox", "0 0 26 4");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M0 2H26");
  path.setAttribute("stroke-dasharray", dash(name).join(" "));
  path.style.stroke = colour(name);
  line.append(path);
  return el("li", {}, line, el("span", { class: "name" }, name), el("span", { class: "value" }));
}

/** Write the values under the pointer, or the newest values, into the legend. */
function writeLegend() {
  if (!chart) return;
  const [x, ...lines] = chart.data;
  const point = chart.cursor.idx ?? x.length - 1;
  [...byId("history-legend").children].forEach((entry, index) => {
    const value = lines[index]?.[point];
    write(entry.lastChild, value === null || value === undefined ? "–" : percent(value));
  });
}

const chartWidth = () => Math.max(200, byId("history").clientWidth);

new ResizeObserver(() => chart?.setSize({ width: chartWidth(), height: HEIGHT })).observe(byId("history"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart?.redraw());
