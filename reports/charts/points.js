// SPDX-License-Identifier: GPL-2.0-only
// The points of a drawn panel for mouse, keyboard and screen reader.
"use strict";

const tip = document.createElement("div");
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;

function handles(figure) {
	return [...figure.querySelectorAll(".handles path")];
}

function row(handle) {
	return handle.__data__.datum;
}

// The handle that an event means: of those that lie on one another the nearest to the mouse.
function pointed(figure, event) {
	const target = event.target.closest(".handles path");
	if (!target || !event.isTrusted || event.clientX === undefined)
		return target;
	const distance = handle => {
		const box = handle.getBoundingClientRect();
		return Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
	};
	return handles(figure).reduce((a, b) => distance(b) < distance(a) ? b : a);
}

function showTip(handle, lines) {
	tip.replaceChildren(...lines.map(([tag, text]) => {
		const line = document.createElement(tag);
		line.textContent = text;
		return line;
	}));
	tip.hidden = false;
	const box = handle.getBoundingClientRect(), own = tip.getBoundingClientRect();
	const left = Math.min(Math.max(4, box.right + 6), document.documentElement.clientWidth - own.width - 4);
	const top = box.top - own.height - 6 > 0 ? box.top - own.height - 6 : box.bottom + 6;
	tip.style.left = `${Math.max(4, left)}px`;
	tip.style.top = `${top}px`;
}

function hideTip() {
	tip.hidden = true;
}

// Acts on the point that an event means, where it means one.
function onPoint(figure, act) {
	return event => {
		const handle = pointed(figure, event);
		if (handle)
			act(handle);
	};
}

// `told(handle)` is what a point says under the mouse, or when it has the focus.
function tellPoints(figure, told) {
	const tell = onPoint(figure, handle => showTip(handle, told(handle)));
	for (const type of ["pointermove", "focusin"])
		figure.addEventListener(type, tell);
	for (const type of ["pointerout", "focusout"])
		figure.addEventListener(type, hideTip);
}

// One stop of the Tab key for each panel; arrows go on from there.
function makeFocusable(figure, attributes) {
	handles(figure).forEach((handle, i) => {
		for (const [name, value] of Object.entries(attributes))
			handle.setAttribute(name, value);
		handle.setAttribute("tabindex", i ? "-1" : "0");
	});
}

function focusPoint(figure, handle) {
	handles(figure).forEach(other => other.setAttribute("tabindex", other === handle ? "0" : "-1"));
	handle.focus();
}

// Left and right along the curve, up and down to the next curve with this core count by value.
function neighbour(figure, handle, key) {
	const here = row(handle), all = handles(figure);
	const along = all.filter(h => row(h).curve === here.curve).sort((a, b) => row(a).cores - row(b).cores);
	const across = all.filter(h => row(h).cores === here.cores).sort((a, b) => row(a).value - row(b).value);
	return {
		ArrowRight: along[along.indexOf(handle) + 1], ArrowLeft: along[along.indexOf(handle) - 1],
		ArrowUp: across[across.indexOf(handle) + 1], ArrowDown: across[across.indexOf(handle) - 1],
		Home: along[0], End: along.at(-1),
	}[key];
}

// A range around a value, on an axis of this kind.
function around(range, value, factor, kind) {
	if (kind === "log")
		return range.map(end => value * (end / value) ** factor);
	return range.map(end => value + (end - value) * factor);
}
