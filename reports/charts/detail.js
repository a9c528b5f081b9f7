// SPDX-License-Identifier: GPL-2.0-only
// A point's diagnosis in a dialog.
"use strict";

const detail = document.getElementById("detail");

function element(tag, text) {
	const made = document.createElement(tag);
	made.textContent = text;
	return made;
}

function fact(name, value) {
	const line = document.createElement("div");
	line.append(element("dt", name), element("dd", value));
	return line;
}

// The content for this point, or for the nearest profiled point of its curve.
function nearest(curve, point, kind) {
	const profiled = [...document.querySelectorAll(`[data-${kind}]`)];
	const by = [...curve.points].sort((a, b) => Math.abs(a.cores - point.cores) - Math.abs(b.cores - point.cores));
	for (const other of by) {
		const source = profiled.find(e => e.dataset[kind] === other.point);
		if (!source)
			continue;
		const content = (source.content ?? source).cloneNode(true);
		content.querySelector("[id]")?.removeAttribute("id");
		return { other, content };
	}
	return null;
}

// `diagnosed`: the page has a diagnosis section.
function fillDetail(panel, curve, point, diagnosed) {
	const facts = document.createElement("dl");
	facts.className = "facts";
	for (const measure of Object.keys(MEASURES))
		for (const relative of [false, true]) {
			const view = { measure, relative }, found = figures(curve, point, view);
			if (found)
				facts.append(fact(`${MEASURES[measure].title}${relative ? ", relative to the base" : ""}`,
					inUnit(found[0], panel, view) + (point.spread === "none" ? "" : ` (${inUnit(found[1], panel, view)} to ${inUnit(found[2], panel, view)})`)));
		}
	facts.append(fact("repetitions", `${point.n}${point.disturbed ? `, ${point.disturbed} of them disturbed by other processes` : ""}`));
	if (point.change)
		facts.append(fact("change of operations per second", point.change));
	const body = document.getElementById("detail-body");
	document.getElementById("detail-title").textContent = `${panel.name} on ${curve.name}, ${point.cores} core${point.cores === 1 ? "" : "s"}`;
	body.replaceChildren(facts);
	if (curve.command)
		body.append(element("h3", "Command to measure this point again"), element("pre", curve.command + point.cores));
	for (const [kind, title] of [["diagnosis", "Diagnosis"], ["lines", "Cache lines that cores waited for"]]) {
		const found = nearest(curve, point, kind);
		if (!found)
			continue;
		body.append(element("h3", title));
		if (found.other !== point)
			body.append(element("p", `This point has no profile. The nearest profiled point of this curve is at ${found.other.cores} cores:`));
		body.append(found.content);
	}
	if (diagnosed && !nearest(curve, point, "diagnosis"))
		body.append(element("h3", "Diagnosis"), element("p", "This curve has no profile. To record one, measure it again with --profile locks,cpu,offcpu."));
	for (const details of body.querySelectorAll("details"))
		if (details.dataset.diagnosis)
			details.open = true;
}
