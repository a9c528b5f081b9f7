// SPDX-License-Identifier: GPL-2.0-only
// Draws the panels of the page, and draws them again when the view changes. User actions change the view.
"use strict";

const read = id => JSON.parse(document.getElementById(id).textContent);
const { panels, measures, diagnosed } = read("chart-data");
const template = read("chart-spec");
const controls = document.getElementById("controls");
const charts = new Map(panels.map(panel => [panel.id, {
	panel, figure: document.getElementById(panel.id), drawn: null, spec: width => fill(template, panel, view, width),
}]));
const ratios = ratioCharts();
let view = firstView();
const waiting = new Set();
let drawing = false;

async function draw(chart) {
	const { panel, figure } = chart, inside = figure.contains(document.activeElement) && document.activeElement.__data__?.datum;
	let place = figure.querySelector(".chart");
	if (!place) {
		place = document.createElement("div");
		place.className = "chart";
		figure.querySelector("svg.plot").after(place);
		figure.classList.add("live");
	}
	chart.width = place.clientWidth;
	const spec = chart.spec(chart.width);
	const drawn = await vegaEmbed(place, spec, { mode: "vega", ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: false });
	chart.drawn?.finalize();
	chart.drawn = drawn;
	if (panel)
		drawn.view.addSignalListener("zoomed", (name, range) => range && change(() => view.zoom.set(panel.id, range), [chart]));
	makeFocusable(figure, chart.role ? { role: chart.role } : { role: "button", "aria-haspopup": "dialog" });
	for (const handle of handles(figure).filter(h => row(h).predicted)) {
		handle.setAttribute("role", "img");
		handle.removeAttribute("aria-haspopup");
	}
	const again = inside && handles(figure).find(h => row(h).curve === inside.curve && row(h).place === inside.place);
	if (again)
		focusPoint(figure, again);
}

// Draws the panels in sight first, one at a time, so that the page stays responsive.
async function drawAll(some) {
	some.forEach(chart => waiting.add(chart));
	if (drawing || !waiting.size)
		return;
	drawing = true;
	delete document.body.dataset.drawn;
	while (waiting.size) {
		const chart = [...waiting].reduce((a, b) => far(b) < far(a) ? b : a);
		waiting.delete(chart);
		await draw(chart);
		await new Promise(resume => setTimeout(resume));
	}
	drawing = false;
	document.body.dataset.drawn = "all";
}

function far({ figure }) {
	const box = figure.getBoundingClientRect();
	return Math.max(0, box.top - innerHeight, -box.bottom);
}

function change(edit, some = [...charts.values()]) {
	edit();
	history.replaceState(null, "", `#${writeView(view)}`);
	showControls();
	drawAll(some);
}

function showControls() {
	for (const input of controls.querySelectorAll("[name]"))
		if (input.type === "checkbox")
			input.checked = view[input.name] === true || view[input.name] === "log";
		else
			input.value = view[input.name];
	document.body.classList.toggle("no-ideal", !view.ideal);
	for (const box of document.querySelectorAll(".legend input"))
		box.checked = !offs(box).has(box.value);
	for (const { panel, figure } of charts.values()) {
		figure.classList.toggle("wide", view.wide.has(panel.id));
		figure.querySelector(".enlarge").setAttribute("aria-pressed", String(view.wide.has(panel.id)));
	}
}

function tooltipLines(figure, handle) {
	const { panel } = charts.get(figure.id), { curve, place, label, predicted } = row(handle);
	return predicted ? [["p", label]] : [["p", label], ["code", (panel.curves[curve].command ?? "") + panel.curves[curve].points[place].cores]];
}

function openPoint(figure, handle) {
	const { panel } = charts.get(figure.id), { curve, place, predicted } = row(handle);
	if (predicted) // its tooltip says all that is known
		return;
	hideTip();
	change(() => { view.point = `${panel.id}:${place}:${panel.curves[curve].name}`; }, []);
	showPoint();
}

function showPoint() {
	const [id, place, ...name] = (view.point ?? "").split(":"), panel = charts.get(id)?.panel;
	const curve = panel?.curves.find(c => c.name === name.join(":")), point = curve?.points[place];
	if (!point)
		return;
	fillDetail(panel, curve, point, diagnosed);
	detail.showModal();
}

function zoomBy(figure, handle, factor) {
	const chart = charts.get(figure.id), here = row(handle);
	const now = domains(chart.panel, handles(figure).map(row), view);
	change(() => view.zoom.set(figure.id, [...around(now.x, here.cores, factor, view.x), ...around(now.y, here.value, factor, view.y)]), [chart]);
}

function unzoom(figure) {
	change(() => view.zoom.delete(figure.id), [charts.get(figure.id)]);
}

function onKey(event, figure) {
	const handle = event.target.closest(".handles path");
	if (event.key === "Escape")
		hideTip();
	if (!handle || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const next = neighbour(figure, handle, event.key);
	if (next)
		focusPoint(figure, next);
	else if (event.key === "Enter" || event.key === " ")
		openPoint(figure, handle);
	else if (event.key === "+" || event.key === "-")
		zoomBy(figure, handle, event.key === "+" ? 0.5 : 2);
	else if (event.key === "0")
		unzoom(figure);
	else if (!/^(Arrow|Home|End)/.test(event.key))
		return;
	event.preventDefault();
}

function makeLive({ panel, figure }) {
	attachTooltips(figure, handle => tooltipLines(figure, handle));
	figure.addEventListener("click", onPoint(figure, handle => openPoint(figure, handle)));
	figure.addEventListener("dblclick", event => event.target.closest(".chart") && unzoom(figure));
	figure.addEventListener("keydown", event => onKey(event, figure));
	const enlarge = element("button", "\u2922");
	enlarge.type = "button";
	enlarge.className = enlarge.title = "enlarge";
	enlarge.setAttribute("aria-label", `Enlarge ${panel.name}`);
	enlarge.addEventListener("click", () => change(() => view.wide.delete(panel.id) || view.wide.add(panel.id), []));
	figure.querySelector("figcaption").append(enlarge);
}

// The set of hidden file systems, or of hidden runs, that a legend box adds to or removes from.
function offs(box) {
	return box.closest("[data-run]") ? view.without : view.off;
}

function makeSwitches() {
	for (const item of document.querySelectorAll(".legend [data-curve], .legend [data-run]")) {
		const label = document.createElement("label"), box = document.createElement("input");
		box.type = "checkbox";
		box.value = item.dataset.curve ?? item.dataset.run;
		box.addEventListener("change", () => change(() => offs(box).delete(box.value) || offs(box).add(box.value)));
		label.append(box, ...item.childNodes);
		item.append(label);
	}
}

function restore() {
	detail.close();
	view = readView(location.hash.slice(1));
	showControls();
	drawAll([...charts.values()]);
	showPoint();
}

function start() {
	document.body.append(tip);
	for (const id of measures)
		controls.querySelector("[name=measure]").append(new Option(MEASURES[id].title, id));
	controls.addEventListener("change", event => {
		const { name, type, checked, value } = event.target;
		change(() => {
			view[name] = type !== "checkbox" ? value : name.length > 1 ? checked : checked ? "log" : "linear";
			if (name === "measure" || name === "relative")
				view.zoom.clear(); // the old ranges are in other units
		}, name === "ideal" ? [] : undefined);
	});
	document.getElementById("whole").addEventListener("click", () => change(() => { view = firstView(); }));
	controls.hidden = false;
	makeSwitches();
	charts.forEach(makeLive);
	// The event arrives after close() returns: another point may be open by then.
	detail.addEventListener("close", () => !detail.open && view.point && change(() => { view.point = null; }, []));
	document.getElementById("detail-close").addEventListener("click", () => detail.close());
	addEventListener("hashchange", () => /=/.test(location.hash) && restore());
	const widths = new ResizeObserver(entries => {
		const changed = [...ratios, ...charts.values()].filter(c => c.drawn && entries.some(e => e.target === c.figure) &&
			Math.abs(c.width - c.figure.clientWidth) > 1);
		if (changed.length)
			drawAll(changed);
	});
	[...ratios, ...charts.values()].forEach(({ figure }) => widths.observe(figure));
	restore();
	drawAll(ratios);
}

start();
