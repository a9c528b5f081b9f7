// SPDX-License-Identifier: GPL-2.0-only
// The state of the view, and its form in the URL: #measure=latency&y=log&off=xfs&without=6.1.
"use strict";

const MEASURES = {
	rate: { title: "operations per second", better: "high" },
	cpu: { title: "operations per CPU second", better: "high" },
	latency: { title: "mean latency", better: "low" },
	p50: { title: "median latency", better: "low" },
	p99: { title: "99th percentile of latency (p99)", better: "low" },
	"p99.9": { title: "99.9th percentile of latency (p99.9)", better: "low" },
	max: { title: "maximum latency", better: "low" },
	"slowest-worker": { title: "slowest worker over the mean", better: "high" },
	jain: { title: "Jain's index of fairness", better: "high" },
};

function firstView() {
	return { measure: "rate", relative: false, ideal: true, x: "linear", y: "linear", off: new Set(), without: new Set(), zoom: new Map(), wide: new Set(), point: null };
}

// Writes only the settings that differ from the first view.
function writeView(view) {
	const params = new URLSearchParams(), first = firstView();
	for (const key of ["measure", "x", "y"])
		if (view[key] !== first[key])
			params.set(key, view[key]);
	if (view.relative)
		params.set("relative", "yes");
	if (!view.ideal)
		params.set("ideal", "no");
	for (const name of view.off)
		params.append("off", name);
	for (const run of view.without)
		params.append("without", run);
	for (const id of view.wide)
		params.append("wide", id);
	for (const [id, range] of view.zoom)
		params.append("zoom", `${id}:${range.map(v => Number(v.toPrecision(6))).join(",")}`);
	if (view.point)
		params.set("point", view.point);
	return params.toString();
}

// Settings that the URL does not have, or has with a wrong value, stay as in the first view.
function readView(text) {
	const params = new URLSearchParams(text), view = firstView();
	if (params.get("measure") in MEASURES)
		view.measure = params.get("measure");
	for (const axis of ["x", "y"])
		if (params.get(axis) === "log")
			view[axis] = "log";
	view.relative = params.get("relative") === "yes";
	view.ideal = params.get("ideal") !== "no";
	view.off = new Set(params.getAll("off"));
	view.without = new Set(params.getAll("without"));
	view.wide = new Set(params.getAll("wide"));
	for (const zoom of params.getAll("zoom")) {
		const [id, numbers = ""] = zoom.split(":"), range = numbers.split(",").map(Number);
		if (range.length === 4 && range.every(Number.isFinite) && range[0] < range[1] && range[2] < range[3])
			view.zoom.set(id, range);
	}
	view.point = params.get("point");
	return view;
}
