"use strict";

const themes = ["auto", "light", "dark"];
const themeButton = document.getElementById("theme");

function showTheme() {
  const theme = document.documentElement.dataset.theme || "auto";
  document.getElementById("theme-name").textContent = theme;
  themeButton.setAttribute("aria-label", `Colour theme: ${theme === "auto" ? "automatic" : theme}`);
}

themeButton.addEventListener("click", () => {
  const theme = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % themes.length];
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem("memorizz-theme", theme);
  showTheme();
});
showTheme();

// The menu stands open beside the page where there is room for it.
const menu = document.getElementById("menu");
const wide = matchMedia("(min-width: 60rem)");
function placeMenu() {
  if (menu) menu.open = wide.matches;
}
wide.addEventListener("change", placeMenu);
placeMenu();

for (const time of document.querySelectorAll("time[data-unix]")) {
  const moment = new Date(Number(time.dataset.unix) * 1000);
  if (!Number.isNaN(moment.valueOf())) {
    time.dateTime = moment.toISOString();
    time.textContent = moment.toISOString().slice(0, 16).replace("T", " ") + " UTC";
  }
}
