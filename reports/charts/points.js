// SPDX-License-Identifier: GPL-2.0-only
// Makes the points of a drawn panel usable by mouse, keyboard and screen reader.
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

// The handle that an event refers to. Of overlapping handles it is the nearest to the mouse.
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

// Calls `act` with the handle that an event refers to, if there is one.
function onPoint(figure, act) {
	return event => {
		const handle = pointed(figure, event);
		if (handle)
			act(handle);
	};
}

// Shows a tooltip with `linesOf(handle)` for the point under the mouse, or with the focus.
function attachTooltips(figure, linesOf) {
	const show = onPoint(figure, handle => showTip(handle, linesOf(handle)));
	for (const type of ["pointermove", "focusin"])
		figure.addEventListener(type, show);
	for (const type of ["pointerout", "focusout"])
		figure.addEventListener(type, hideTip);
}

// The Tab key stops once per panel; arrow keys move on from there.
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

// Left and right: along the curve. Up and down: the next higher or lower point at the same core count.
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

// Scales a range around a value, on a linear or logarithmic axis.
function around(range, value, factor, kind) {
	if (kind === "log")
		return range.map(end => value * (end / value) ** factor);
	return range.map(end => value + (end - value) * factor);
}
