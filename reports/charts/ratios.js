// SPDX-License-Identifier: GPL-2.0-only
// Draws the ratios of a comparison: a row per cell with its dots, interval and margin.
"use strict";

const ROW = 40; // pixels
const STEPS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100];
const TICK = 56; // pixels that a label takes
const VERDICTS = { slower: "var(--bad)", faster: "var(--good)" };

// Ratios at round steps from 1, spaced so that labels do not overlap.
function ratioTicks([low, high], width) {
	const most = Math.max(2, width / TICK), reach = Math.exp(high) - Math.exp(low);
	const step = STEPS.find(s => reach / s <= most) ?? reach / most;
	const first = Math.ceil((Math.exp(low) - 1) / step), last = Math.floor((Math.exp(high) - 1) / step);
	return Array.from({ length: last - first + 1 }, (_, i) => 1 + (first + i) * step).filter(v => v > 0).map(Math.log);
}

// The points of each row: the estimate first, then the dots in ascending order.
function ratioPoints(cells) {
	return cells.flatMap((cell, row) => {
		const dots = cell.dots.toSorted((a, b) => a[0] - b[0]).map(([ratio, label]) => ({ value: Math.log(ratio), label: `${cell.name}, ${label}` }));
		const own = [{ value: Math.log(cell.ratio ?? 1), label: cell.label }, ...dots];
		return own.map((point, place) => ({ ...point, row, place, curve: row }));
	});
}

function fillRatios(template, figure, width) {
	const spec = structuredClone(template), cells = figure.rows, domain = figure.reach.map(Math.log);
	const estimated = cells.flatMap((cell, row) => cell.ratio === null ? [] :
		[{ row, value: Math.log(cell.ratio), low: Math.log(cell.low), high: Math.log(cell.high) }]);
	const values = {
		rows: cells.map((cell, row) => ({
			row, name: cell.name, said: cell.said, colour: VERDICTS[cell.verdict] ?? "var(--ink)",
			least: Math.log(cell.margins[0]), most: Math.log(cell.margins[1]),
		})),
		blocks: cells.flatMap((cell, row) => cell.ticks.map(ratio => ({ row, value: Math.log(ratio) }))),
		dots: cells.flatMap((cell, row) => cell.dots.map(([ratio]) => ({ row, value: Math.log(ratio) }))),
		estimates: estimated,
		points: ratioPoints(cells),
	};
	const signals = { xDomain: domain, rowHeight: ROW, tickValues: ratioTicks(domain, width) };
	for (const data of spec.data)
		data.values = values[data.name];
	for (const signal of spec.signals)
		signal.value = signals[signal.name];
	spec.width = width;
	spec.height = ROW * cells.length + 36;
	spec.description = `${figure.title}: NEW over BASE of ${cells.length} cells`;
	return spec;
}

// Up and down: the next cell. Left and right: the next dot of the cell.
function nextRatio(figure, handle, key) {
	const here = row(handle), all = handles(figure), own = all.filter(h => row(h).row === here.row);
	const estimate = number => all.find(h => row(h).row === number && row(h).place === 0);
	return {
		ArrowDown: estimate(here.row + 1), ArrowUp: estimate(here.row - 1),
		ArrowRight: own[here.place + 1], ArrowLeft: own[here.place - 1],
		Home: estimate(0), End: estimate(row(all.at(-1)).row),
	}[key];
}

function makeRatiosLive(figure) {
	const show = event => {
		const handle = pointed(figure, event);
		if (handle)
			showTip(handle, [["p", row(handle).label]]);
	};
	for (const type of ["pointermove", "focusin"])
		figure.addEventListener(type, show);
	for (const type of ["pointerout", "focusout"])
		figure.addEventListener(type, hideTip);
	figure.addEventListener("keydown", event => {
		const handle = event.target.closest(".handles path");
		if (event.key === "Escape")
			hideTip();
		if (!handle || !/^(Arrow|Home|End)/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey)
			return;
		const next = nextRatio(figure, handle, event.key);
		if (next)
			focusPoint(figure, next);
		event.preventDefault();
	});
}

// The ratio charts of the page; none if the page is not a comparison.
function ratioCharts() {
	const source = document.getElementById("ratio-data");
	if (!source)
		return [];
	const template = JSON.parse(document.getElementById("ratio-spec").textContent);
	return JSON.parse(source.textContent).map(drawn => {
		const figure = document.getElementById(drawn.id);
		makeRatiosLive(figure);
		return { figure, drawn: null, role: "img", spec: width => fillRatios(template, drawn, width) };
	});
}
