// SPDX-License-Identifier: GPL-2.0-only
"use strict";

const theme = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function showTheme(dark) {
	theme.setAttribute("aria-pressed", String(dark));
	theme.textContent = dark ? "Light" : "Dark";
}

theme.addEventListener("click", () => {
	const dark = theme.getAttribute("aria-pressed") !== "true";
	document.documentElement.style.colorScheme = dark ? "dark" : "light";
	showTheme(dark);
});
prefersDark.addEventListener("change", () => {
	if (!document.documentElement.style.colorScheme)
		showTheme(prefersDark.matches);
});
showTheme(prefersDark.matches);

// Sorts a table by a column. Empty values go last in either direction; equal values keep their order.
function sortBy(table, column, descending) {
	const value = row => {
		const cell = row.cells[column];
		const text = cell.dataset.value ?? cell.textContent.trim();
		return cell.dataset.value === undefined || text === "" ? text : Number(text);
	};
	const rows = [...table.tBodies[0].rows];
	rows.sort((a, b) => {
		const x = value(a), y = value(b);
		if (x === "" || y === "")
			return (x === "") - (y === "");
		const order = typeof x === "number" ? x - y : x.localeCompare(y);
		return descending ? -order : order;
	});
	table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
	const headers = [...table.tHead.rows[0].cells];
	headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => {
		const descending = header.getAttribute("aria-sort") === "ascending";
		headers.forEach(other => other.removeAttribute("aria-sort"));
		header.setAttribute("aria-sort", descending ? "descending" : "ascending");
		sortBy(table, column, descending);
	}));
}

for (const filter of document.querySelectorAll("input[data-filters]")) {
	const rows = [...document.getElementById(filter.dataset.filters).tBodies[0].rows];
	const names = rows.map(row => [...row.cells].slice(0, 5).map(c => c.textContent).join(" ").toLowerCase());
	filter.addEventListener("input", () => {
		const words = filter.value.toLowerCase().split(/\s+/);
		let shown = 0;
		rows.forEach((row, i) => {
			row.hidden = !words.every(word => names[i].includes(word));
			shown += !row.hidden;
		});
		filter.closest("p").querySelector("output").textContent = `${shown} of ${rows.length} rows`;
	});
}
