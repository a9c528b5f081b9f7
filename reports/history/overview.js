// SPDX-License-Identifier: GPL-2.0-only
// Which rows of the overview are listed; the address says it: #workload=MWCL&cores=8.
"use strict";

const filters = document.getElementById("filters");
const listed = [...document.querySelectorAll("[data-filtered] tbody tr")];
const series = listed.filter(row => row.closest("#series"));

function list() {
	const wanted = [...new FormData(filters)].filter(([, value]) => value);
	for (const row of listed)
		row.hidden = !wanted.every(([name, value]) => row.dataset[name] === value);
	const left = series.filter(row => !row.hidden).length;
	document.getElementById("shown").textContent = wanted.length ? `${left} of ${series.length} series` : `${series.length} series`;
	return new URLSearchParams(wanted).toString();
}

function fromAddress() {
	const said = new URLSearchParams(location.hash.slice(1));
	for (const select of filters.elements)
		if (select.name && [...select.options].some(option => option.value === said.get(select.name)))
			select.value = said.get(select.name);
	list();
}

filters.addEventListener("change", () => history.replaceState(null, "", `#${list()}`));
filters.addEventListener("reset", () => setTimeout(() => history.replaceState(null, "", `#${list()}`)));
filters.addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", () => /=/.test(location.hash) && fromAddress());
filters.hidden = !filters.querySelector("select");
fromAddress();
document.body.dataset.drawn = "all";
