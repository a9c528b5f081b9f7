// SPDX-License-Identifier: GPL-2.0-only
// Flame graphs that zoom and search. The frames come from the static pictures that the page holds for readers without
// JavaScript; the script parses a picture only when the reader opens its graph.
"use strict";

const NARROWEST = 0.0015; // share of the width; narrower frames are not drawn
const NAMED = 0.015; // share of the width; narrower frames have no room for a name
const ROUNDED = 0.15; // pixels: coordinates in the picture have one decimal
const graphs = new WeakMap();

// Name, title, left, right and depth of each frame; depth 0 is the root. Parsing as XML runs no script of the picture.
function framesOf(text) {
	const bytes = Uint8Array.from(atob(/base64,([^"]*)/.exec(text)[1]), c => c.charCodeAt(0));
	const picture = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml");
	const found = [...picture.querySelectorAll("g > title")].map(title => {
		const box = title.parentElement.querySelector("rect"), at = key => parseFloat(box?.getAttribute(key));
		const text = title.textContent, name = text.replace(/ \([^()]*\)$/, "");
		return { name, title: text, left: at("x"), right: at("x") + at("width"), top: at("y") };
	}).filter(frame => frame.right > frame.left);
	const rows = [...new Set(found.map(frame => frame.top))].sort((a, b) => b - a);
	return found.map(frame => ({ ...frame, depth: rows.indexOf(frame.top) }));
}

const within = (inner, outer) => inner.left >= outer.left - ROUNDED && inner.right <= outer.right + ROUNDED;

function hue(name) {
	let sum = 0;
	for (const letter of name)
		sum = (sum * 31 + letter.codePointAt(0)) % 997;
	return 12 + sum % 43; // red to yellow
}

function graphOf(details) {
	if (graphs.has(details))
		return graphs.get(details);
	details.querySelector(".live")?.remove(); // a copy of the element has no working graph
	const frames = framesOf(details.querySelector("noscript").textContent);
	const live = document.createElement("div"), bar = document.createElement("p"), label = element("label", "Search ");
	const search = document.createElement("input"), reset = element("button", "Reset zoom"), status = document.createElement("output");
	live.className = "live";
	bar.className = "controls";
	search.type = "search";
	search.autocomplete = "off";
	reset.type = "button";
	label.append(search);
	bar.append(label, reset, status);
	const place = document.createElement("div");
	place.className = "frames";
	place.setAttribute("role", "group");
	place.setAttribute("aria-label", `${details.querySelector("summary").textContent}: arrow keys move between frames, Enter zooms in, Escape resets the zoom`);
	place.style.height = `${1.2 * (1 + Math.max(...frames.map(frame => frame.depth)))}rem`;
	live.append(bar, place);
	details.append(live);
	const graph = { frames, place, search, status, root: frames.find(frame => frame.depth === 0), shown: new Map() };
	graphs.set(details, graph);
	drawFlames(graph, graph.root);
	return graph;
}

// Draws the zoomed frame's callers in full width, and the frame and its callees in their shares of it.
function drawFlames(graph, zoomed, focused = zoomed) {
	graph.zoomed = zoomed;
	graph.shown.clear();
	const whole = zoomed.right - zoomed.left;
	for (const frame of graph.frames) {
		const below = frame.depth < zoomed.depth && within(zoomed, frame);
		const inside = frame.depth >= zoomed.depth && within(frame, zoomed) && frame.right - frame.left >= NARROWEST * whole;
		if (!below && !inside)
			continue;
		const share = below ? 1 : Math.min(1, (frame.right - frame.left) / whole);
		const button = element("button", share < NAMED ? "" : frame.name);
		button.type = "button";
		button.title = frame.title;
		button.setAttribute("aria-label", frame.title);
		button.tabIndex = frame === focused ? 0 : -1;
		button.classList.toggle("below", below);
		button.style.setProperty("--hue", hue(frame.name));
		button.style.left = `${below ? 0 : Math.max(0, 100 * (frame.left - zoomed.left) / whole)}%`;
		button.style.width = `${100 * share}%`;
		button.style.bottom = `${1.2 * frame.depth}rem`;
		graph.shown.set(button, frame);
	}
	graph.place.replaceChildren(...graph.shown.keys());
	markFound(graph);
}

// Marks the matching frames. A match within another match counts once in the share.
function markFound(graph) {
	const text = graph.search.value.trim().toLowerCase(), matches = frame => text && frame.name.toLowerCase().includes(text);
	for (const [button, frame] of graph.shown)
		button.classList.toggle("found", Boolean(matches(frame)));
	const found = graph.frames.filter(matches).sort((a, b) => a.depth - b.depth), outer = [];
	for (const frame of found)
		if (!outer.some(other => within(frame, other)))
			outer.push(frame);
	const share = outer.reduce((sum, frame) => sum + frame.right - frame.left, 0) / (graph.root.right - graph.root.left);
	graph.status.textContent = text ? `${found.length} frame${found.length === 1 ? "" : "s"}, ${(100 * share).toFixed(1)}% of the time` : "";
}

// Focuses a frame; if it is too narrow to be drawn, the one that fills the width.
function focusFrame(graph, frame) {
	const buttons = [...graph.shown.keys()], showing = one => buttons.find(button => graph.shown.get(button) === one);
	const chosen = showing(frame) ?? showing(graph.zoomed);
	for (const button of buttons)
		button.tabIndex = button === chosen ? 0 : -1;
	chosen.focus();
}

// Up: the widest callee; down: the caller; left and right: the next frame of the same depth.
function nextFrame(graph, frame, key) {
	const all = [...graph.shown.values()], level = all.filter(other => other.depth === frame.depth).sort((a, b) => a.left - b.left);
	const callees = all.filter(other => other.depth === frame.depth + 1 && within(other, frame));
	return {
		ArrowUp: callees.sort((a, b) => b.right - b.left - a.right + a.left)[0],
		ArrowDown: all.find(other => other.depth === frame.depth - 1 && within(frame, other)),
		ArrowLeft: level[level.indexOf(frame) - 1], ArrowRight: level[level.indexOf(frame) + 1],
	}[key];
}

function zoomTo(graph, frame, focused) {
	drawFlames(graph, frame, focused);
	focusFrame(graph, focused);
}

document.addEventListener("toggle", event => {
	if (event.target.matches(".flame[open]"))
		graphOf(event.target);
}, true);
document.addEventListener("input", event => {
	const details = event.target.closest(".flame");
	if (details)
		markFound(graphOf(details));
});
document.addEventListener("click", event => {
	const details = event.target.closest(".flame .live button")?.closest(".flame"), graph = details && graphOf(details);
	if (!graph)
		return;
	const frame = graph.shown.get(event.target);
	if (frame)
		zoomTo(graph, frame, frame);
	else
		drawFlames(graph, graph.root);
});
document.addEventListener("keydown", event => {
	const details = event.target.closest(".flame .frames button")?.closest(".flame"), graph = details && graphOf(details);
	const frame = graph?.shown.get(event.target);
	if (!frame || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const next = nextFrame(graph, frame, event.key);
	if (next)
		focusFrame(graph, next);
	else if (event.key === "Escape" && graph.zoomed !== graph.root)
		zoomTo(graph, graph.root, frame);
	else if (!event.key.startsWith("Arrow"))
		return;
	event.preventDefault(); // so that the page does not scroll and the dialog does not close
});
