// SPDX-License-Identifier: GPL-2.0-only
// What is shown, and how an address says it: #measure=latency&y=log&off=xfs&without=6.1.
"use strict";

const MEASURES = {
	rate: { title: "operations per second", better: "high" },
	cpu: { title: "operations per CPU second", better: "high" },
	latency: { title: "mean latency", better: "low" },
	p50: { title: "median latency", better: "low" },
	p99: { title: "99th percentile of latency", better: "low" },
};

function firstView() {
	return { measure: "rate", relative: false, ideal: true, x: "linear", y: "linear", off: new Set(), without: new Set(), zoom: new Map(), wide: new Set(), point: null };
}

// Only what differs from the first view is written.
function writeView(view) {
	const said = new URLSearchParams(), first = firstView();
	for (const key of ["measure", "x", "y"])
		if (view[key] !== first[key])
			said.set(key, view[key]);
	if (view.relative)
		said.set("relative", "yes");
	if (!view.ideal)
		said.set("ideal", "no");
	for (const name of view.off)
		said.append("off", name);
	for (const run of view.without)
		said.append("without", run);
	for (const id of view.wide)
		said.append("wide", id);
	for (const [id, range] of view.zoom)
		said.append("zoom", `${id}:${range.map(v => Number(v.toPrecision(6))).join(",")}`);
	if (view.point)
		said.set("point", view.point);
	return said.toString();
}

// What an address does not say, or says wrongly, is as in the first view.
function readView(text) {
	const said = new URLSearchParams(text), view = firstView();
	if (said.get("measure") in MEASURES)
		view.measure = said.get("measure");
	for (const axis of ["x", "y"])
		if (said.get(axis) === "log")
			view[axis] = "log";
	view.relative = said.get("relative") === "yes";
	view.ideal = said.get("ideal") !== "no";
	view.off = new Set(said.getAll("off"));
	view.without = new Set(said.getAll("without"));
	view.wide = new Set(said.getAll("wide"));
	for (const zoom of said.getAll("zoom")) {
		const [id, numbers = ""] = zoom.split(":"), range = numbers.split(",").map(Number);
		if (range.length === 4 && range.every(Number.isFinite) && range[0] < range[1] && range[2] < range[3])
			view.zoom.set(id, range);
	}
	view.point = said.get("point");
	return view;
}
