// SPDX-License-Identifier: GPL-2.0-only
// Draws the trends of a page with Vega, in the available width.
"use strict";

const LATEST = [100, 50, 20];
const FEWEST = 240; // pixels that a drawing takes

const controls = document.getElementById("controls");
const latest = controls.querySelector("[name=latest]"), zero = controls.querySelector("[name=zero]");
const trends = [...document.querySelectorAll("figure.trend")].map(figure =>
	({ figure, spec: JSON.parse(figure.querySelector("script").textContent), view: null }));
const last = trends[0].spec.signals.find(signal => signal.name === "last").value;

function width(figure) {
	return Math.max(FEWEST, Math.min(figure.clientWidth, 1600));
}

function shown() {
	const count = Number(latest.value);
	return count ? Math.max(0, last + 1 - count) : 0;
}

async function draw(trend) {
	const place = document.createElement("div");
	place.className = "chart";
	trend.figure.append(place);
	trend.figure.classList.add("live");
	trend.spec.width = width(trend.figure);
	const drawn = await vegaEmbed(place, trend.spec, { mode: "vega", ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: false });
	trend.view = drawn.view;
	await show(trend);
}

async function show(trend) {
	await trend.view.width(width(trend.figure)).signal("first", shown()).signal("zero", zero.checked).runAsync();
	makeFocusable(trend.figure, { role: "link" });
}

async function all(act) {
	delete document.body.dataset.drawn;
	for (const trend of trends)
		await act(trend);
	document.body.dataset.drawn = "all";
}

function goToRow(handle) {
	location.hash = `run-${row(handle).x}`;
}

function onKey(event, figure) {
	const handle = event.target.closest(".handles path");
	if (event.key === "Escape")
		hideTip();
	if (!handle || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const across = { ArrowUp: -1, ArrowDown: 1 }[event.key], next = across ? beside(figure, handle, across) : along(figure, handle, event.key);
	if (next)
		focusPoint(next.closest("figure"), next);
	else if (event.key === "Enter" || event.key === " ")
		goToRow(handle);
	else if (!/^(Arrow|Home|End)/.test(event.key))
		return;
	event.preventDefault();
}

function along(figure, handle, key) {
	const all = handles(figure), here = all.indexOf(handle);
	return { ArrowRight: all[here + 1], ArrowLeft: all[here - 1], Home: all[0], End: all.at(-1) }[key];
}

// The same run at the next or the previous core count.
function beside(figure, handle, by) {
	const other = trends[trends.findIndex(trend => trend.figure === figure) + by];
	return other && handles(other.figure).find(h => row(h).x === row(handle).x);
}

function makeLive({ figure }) {
	attachTooltips(figure, handle => [["p", row(handle).label]]);
	figure.addEventListener("click", onPoint(figure, goToRow));
	figure.addEventListener("keydown", event => onKey(event, figure));
}

document.body.append(tip);
for (const count of LATEST.filter(count => count <= last))
	latest.append(new Option(`latest ${count}`, count));
controls.addEventListener("change", () => all(show));
controls.hidden = false;
trends.forEach(makeLive);
all(draw).then(() => {
	let wide = width(trends[0].figure);
	new ResizeObserver(() => {
		if (Math.abs(wide - width(trends[0].figure)) > 1) {
			wide = width(trends[0].figure);
			all(show);
		}
	}).observe(trends[0].figure);
});
