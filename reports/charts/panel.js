// SPDX-License-Identifier: GPL-2.0-only
// Turns a panel's data and the view into a Vega specification.
"use strict";

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const HEIGHT = 0.72; // of the width
const LARGEST = 460; // pixels high
const LINEAR_WITHIN = 3; // times the highest point, up to which the axis shows linear scaling
const LABEL = 20; // pixels that a core count takes
const SHARES = ["slowest-worker", "jain"]; // measures from 0 to 1, without a unit

function short(value) {
	const [factor, prefix] = PREFIXES.find(([f]) => Math.abs(value) >= 0.9995 * f) ?? PREFIXES.at(-1);
	return [Number((value / factor).toPrecision(3)), prefix];
}

function inUnit(value, panel, view) {
	if (view.relative)
		return `${Number(value.toPrecision(3))}×`;
	if (SHARES.includes(view.measure))
		return String(Number(value.toPrecision(3)));
	const [number, prefix] = short(value);
	const unit = { rate: ` ${panel.unit}/s`, cpu: ` ${panel.unit} per CPU second` }[view.measure] ?? "s";
	return `${number} ${prefix}${unit}`.replace("  ", " ");
}

// [median, low, high] of a point in this view; null if it was not recorded. The interval of a ratio runs from
// the low end of one spread over the high end of the other to the reverse.
function figures(curve, point, view) {
	const own = point[view.measure];
	if (!own || !view.relative)
		return own ?? null;
	const base = curve.based ? curve.points[0][view.measure] : null;
	return base ? [own[0] / base[0], own[1] / base[2], own[2] / base[1]] : null;
}

function spoken(curve, point, panel, view) {
	const [median, low, high] = figures(curve, point, view);
	const parts = [`${curve.name} at ${point.cores} core${point.cores === 1 ? "" : "s"}: ${inUnit(median, panel, view)}`];
	if (point.spread !== "none")
		parts.push(`${point.spread === "quartiles" ? "quartiles" : "from"} ${inUnit(low, panel, view)} to ${inUnit(high, panel, view)}`);
	parts.push(`${point.n} repetition${point.n === 1 ? "" : "s"}`);
	if (point.change && view.measure === "rate" && !view.relative)
		parts.push(point.change);
	if (point.disturbed)
		parts.push(`${point.disturbed} disturbed`);
	return parts.join(", ");
}

// Whether the legend hides the curve's file system or its run.
function isOff(curve, view) {
	return view.off.has(curve.filesystem) || view.without.has(curve.run);
}

function rows(panel, view) {
	return panel.curves.flatMap((curve, number) => isOff(curve, view) ? [] : curve.points.flatMap((point, place) => {
		const found = figures(curve, point, view);
		return found ? [{
			curve: number, place, cores: point.cores, value: found[0], low: found[1], high: found[2],
			disturbed: point.disturbed > 0, colour: curve.colour, shape: curve.shape, dash: curve.dash,
			label: spoken(curve, point, panel, view),
		}] : [];
	}));
}

// The predicted points, and before those of each curve, without a label, the measured one at which they begin.
function predictedRows(panel, view) {
	if (view.measure !== "rate")
		return [];
	return panel.curves.flatMap((curve, number) => {
		if (!curve.predicted || isOff(curve, view))
			return [];
		const { from, dash, points } = curve.predicted, begin = curve.points[from], found = figures(curve, begin, view);
		if (!found)
			return [];
		const path = [[begin.cores, found], ...points.map(p => [p.cores, view.relative ? p.speedup : p.rate])];
		return path.map(([cores, [value, low, high]], step) => ({
			curve: number, place: curve.points.length + step, predicted: true, cores, value, low, high, colour: curve.colour, shape: curve.shape, dash,
			label: step ? `${curve.name} at ${cores} cores: predicted, not measured: ${inUnit(value, panel, view)}, interval ${inUnit(low, panel, view)} to ${inUnit(high, panel, view)}` +
				(points[step - 1].judged ? "" : ", farther than any prediction that was judged") : "",
		}));
	});
}

// A reference line from the fastest base: for rates, the base times `factors`; for the other measures, constant.
function reference(panel, view, factors) {
	const start = panel.ideal?.start[view.measure];
	if (!start)
		return [];
	return factors.map(([cores, factor]) =>
		({ cores, value: (view.relative ? 1 : start[0]) * (view.measure === "rate" ? factor : 1) }));
}

const onAxis = (value, kind) => kind === "log" ? Math.log(value) : value;

// Where the line of linear scaling leaves the plot at its top; nowhere if it ends inside.
function leaves(linear, { x, y: [, top] }, view) {
	const after = linear.findIndex(point => point.value > top);
	if (after < 1)
		return [];
	const ends = linear.slice(after - 1, after + 1);
	const [first, last] = ends.map(end => onAxis(end.cores, view.x)), [low, high] = ends.map(end => onAxis(end.value, view.y));
	const place = first + (last - first) * (onAxis(top, view.y) - low) / (high - low), cores = view.x === "log" ? Math.exp(place) : place;
	return x[0] <= cores && cores <= x[1] ? [{ cores, value: top }] : [];
}

// The measured core counts, and those of the predicted points that are shown.
function coreCounts(panel, shown) {
	return [...new Set([...panel.cores, ...shown.map(row => row.cores)])].sort((a, b) => a - b);
}

function domains(panel, shown, view) {
	const zoom = view.zoom.get(panel.id);
	if (zoom)
		return { x: zoom.slice(0, 2), y: zoom.slice(2) };
	const counts = coreCounts(panel, shown), [first, last] = [counts[0], counts.at(-1)];
	const grown = view.x === "log" ? 1.08 : 0.06 * (last - first || 8);
	const x = view.x === "log" ? [first / grown, last * grown] : [first - grown, last + grown];
	const low = Math.min(...shown.map(row => row.low)), high = Math.max(...shown.map(row => row.high));
	if (!shown.length)
		return { x, y: [view.y === "log" ? 0.1 : 0, 1] };
	const end = reference(panel, view, panel.ideal?.factors).at(-1)?.value ?? high;
	const top = view.y === "log" || end <= LINEAR_WITHIN * high ? Math.max(high, end) : high;
	return { x, y: view.y === "log" ? [low / 1.25, top * 1.25] : [0, 1.08 * top] };
}

// The core counts that have room for a label: the highest and the lowest first, then downwards from the highest.
function coreTicks(cores, kind, width) {
	const [first, last] = [onAxis(cores[0], kind), onAxis(cores.at(-1), kind)];
	const place = count => last > first ? (onAxis(count, kind) - first) / (last - first) * width : 0;
	const kept = cores.slice(-1);
	for (const count of [...cores.slice(0, 1), ...cores.toReversed()])
		if (kept.every(other => Math.abs(place(other) - place(count)) >= LABEL))
			kept.push(count);
	return kept.sort((a, b) => a - b);
}

function yTitle(panel, view) {
	if (view.relative)
		return view.measure === "rate" ? "speed-up" : "relative to base";
	if (SHARES.includes(view.measure))
		return "share";
	return { rate: `${panel.unit}/s`, cpu: `${panel.unit} per CPU s` }[view.measure] ?? "seconds";
}

// Fills in a copy of the template: Vega cannot change the type of an axis afterwards.
function fill(template, panel, view, width) {
	const spec = structuredClone(template), measured = rows(panel, view), paths = predictedRows(panel, view);
	const predicted = paths.filter(row => row.label), shown = [...measured, ...predicted], range = domains(panel, shown, view);
	const inside = counts => counts.filter(end => panel.cores[0] <= end && end < panel.cores.at(-1)).map(end => ({ after: end + 0.5 }));
	const linear = reference(panel, view, panel.ideal?.factors);
	const values = {
		points: measured, paths, predicted, every: shown, linear, exits: leaves(linear, range, view),
		machine: view.measure === "rate" ? reference(panel, view, panel.given) : [],
		ends: inside(panel.sockets), slower: inside(panel.kinds),
		shared: panel.physical && panel.physical < panel.cores.at(-1) ? [{ from: panel.physical + 0.5, to: predicted.length ? panel.cores.at(-1) + 0.5 : range.x[1] }] : [],
	};
	const signals = {
		xDomain: range.x, yDomain: range.y, ticks: coreTicks(coreCounts(panel, shown).filter(n => range.x[0] <= n && n <= range.x[1]), view.x, 0.8 * width), xTitle: "cores", yTitle: yTitle(panel, view),
		yFormat: view.relative || SHARES.includes(view.measure) ? "~f" : "~s",
	};
	for (const data of spec.data)
		data.values = values[data.name];
	for (const signal of spec.signals)
		if (signal.name in signals)
			signal.value = signals[signal.name];
	for (const scale of spec.scales)
		scale.type = view[scale.name];
	spec.width = width;
	spec.height = Math.min(LARGEST, HEIGHT * width);
	spec.description = `${panel.name}: ${MEASURES[view.measure].title}${view.relative ? " relative to the base" : ""} against cores, ${measured.length} points` +
		(predicted.length ? ` and ${predicted.length} predicted` : "");
	return spec;
}
