// Before the page is drawn, so that it does not flash in the other theme.
"use strict";
const chosenTheme = localStorage.getItem("memorizz-theme");
if (chosenTheme === "light" || chosenTheme === "dark") document.documentElement.dataset.theme = chosenTheme;
