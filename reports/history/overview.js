// SPDX-License-Identifier: GPL-2.0-only
// Filters the rows of the overview; the URL stores the filter: #workload=MWCL&cores=8.
"use strict";

const filters = document.getElementById("filters");
const selects = [...filters.querySelectorAll("select")];
const listed = [...document.querySelectorAll("[data-filtered] tbody tr")];
const series = listed.filter(row => row.closest("#series"));

function list() {
	const wanted = selects.filter(select => select.value).map(select => [select.name, select.value]);
	for (const row of listed)
		row.hidden = !wanted.every(([name, value]) => row.dataset[name] === value);
	const left = series.filter(row => !row.hidden).length;
	document.getElementById("shown").textContent = wanted.length ? `${left} of ${series.length} series` : `${series.length} series`;
	return new URLSearchParams(wanted).toString();
}

function fromAddress() {
	const params = new URLSearchParams(location.hash.slice(1));
	for (const select of selects) {
		const value = params.get(select.name) ?? "";
		select.value = [...select.options].some(option => option.value === value) ? value : "";
	}
	list();
}

function change() {
	history.replaceState(null, "", `#${list()}`);
}

filters.addEventListener("change", change);
document.getElementById("whole").addEventListener("click", () => {
	selects.forEach(select => { select.value = ""; });
	change();
});
addEventListener("hashchange", () => /=/.test(location.hash) && fromAddress());
filters.hidden = !selects.length;
fromAddress();
document.body.dataset.drawn = "all";
