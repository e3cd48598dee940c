"use strict";

const by = (id) => document.getElementById(id);
const SHOWN = 50;

/* Download ------------------------------------------------------------------------------------------------------- */

const exportForm = by("export");
const typeBoxes = [...exportForm.querySelectorAll("input[name=memory_types]")];
by("all-types").addEventListener("click", () => typeBoxes.forEach((box) => (box.checked = true)));
by("no-types").addEventListener("click", () => typeBoxes.forEach((box) => (box.checked = false)));

exportForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  const status = by("export-status");
  if (!typeBoxes.some((box) => box.checked)) {
    say(status, "Choose at least one memory type.", "problem");
    return;
  }
  say(status, "Preparing the archive…");
  const button = exportForm.querySelector("button[type=submit]");
  button.disabled = true;
  try {
    const answer = await fetch(`${exportForm.getAttribute("action")}?${new URLSearchParams(new FormData(exportForm))}`);
    if (!answer.ok) {
      say(status, await reason(answer.status, await answer.text()), "problem");
      return;
    }
    const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "");
    save(await answer.blob(), name ? name[1] : "memory.memorizz.json");
    const count = Number(answer.headers.get("X-Memorizz-Records"));
    say(status, `Downloaded ${count.toLocaleString("en")} ${count === 1 ? "record" : "records"}.`, "good");
  } catch (error) {
    say(status, "The server did not answer. Is it still running?", "problem");
  } finally {
    button.disabled = false;
  }
});

/* Import --------------------------------------------------------------------------------------------------------- */

const importForm = by("import");
const mayWrite = importForm.dataset.mayWrite === "true";
const largest = Number(importForm.dataset.largest);
// The bytes that were previewed: these and no others are imported.
let reviewed = null;
let lastReport = null;
let running = 0;

function invalidate() {
  running += 1;
  reviewed = null;
  by("apply").disabled = true;
  if (!by("report").hidden && lastReport && lastReport.dry_run) {
    by("report").hidden = true;
    say(by("import-status"), "The file or an option changed: preview again.");
  } else {
    say(by("import-status"), "");
  }
}

importForm.addEventListener("input", invalidate);
importForm.addEventListener("submit", (event) => {
  event.preventDefault();
  preview();
});
by("apply").addEventListener("click", apply);

async function preview() {
  const file = by("file").files[0];
  invalidate();
  by("report").hidden = true;
  if (!file) {
    say(by("import-status"), "Choose an archive file first.", "problem");
    return;
  }
  if (file.size > largest) {
    say(by("import-status"), `The file has ${file.size.toLocaleString("en")} bytes; at most ${largest.toLocaleString("en")} can be imported here. The command line takes larger archives.`, "problem");
    return;
  }
  const mine = running;
  let bytes;
  try {
    bytes = await file.arrayBuffer();
  } catch (error) {
    say(by("import-status"), "The file cannot be read. Choose it again.", "problem");
    return;
  }
  const options = chosen();
  const report = await send(bytes, options, true);
  // Something was changed while the server was looking.
  if (report === null || mine !== running) return;
  show(report);
  if (report.ok && report.planned > 0 && mayWrite) {
    reviewed = { bytes, options };
    by("apply").disabled = false;
    say(by("import-status"), "Nothing was written. Review the plan, then import.");
  } else if (!mayWrite) {
    say(by("import-status"), "This memory can only be read: nothing can be imported here.");
  } else if (report.conflicts.length && !report.ok) {
    say(by("import-status"), "Records are there already: choose Skip, Replace or New IDs, and preview again.", "problem");
  } else if (report.planned === 0) {
    say(by("import-status"), "There is nothing to import.");
  }
}

async function apply() {
  if (reviewed === null) return;
  const { bytes, options } = reviewed;
  reviewed = null;
  by("apply").disabled = true;
  const report = await send(bytes, options, false);
  if (report === null) return;
  show(report);
  if (report.ok) say(by("import-status"), `Imported ${report.imported.toLocaleString("en")} records.`, "good");
  else say(by("import-status"), "The import was not completed. The errors say why.", "problem");
}

function chosen() {
  const options = new URLSearchParams();
  for (const name of ["id_strategy", "conflict", "target_memory_id"]) {
    const value = importForm.elements[name].value.trim();
    if (value) options.set(name, value);
  }
  return options;
}

// XMLHttpRequest, since fetch tells nothing of how far an upload is.
function send(bytes, options, dryRun) {
  const status = by("import-status");
  const query = new URLSearchParams(options);
  query.set("dry_run", String(dryRun));
  const waiting = dryRun ? "Looking at the archive…" : "Importing…";
  say(status, waiting);
  by("preview").disabled = true;
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/memory-transfer/import?${query}`);
    request.setRequestHeader("Content-Type", "application/json");
    request.setRequestHeader("X-Memorizz-Connection", importForm.dataset.connection);
    request.upload.addEventListener("progress", (event) => {
      by("upload").hidden = event.loaded >= event.total;
      by("progress").value = event.loaded / event.total;
    });
    request.addEventListener("loadend", async () => {
      by("upload").hidden = true;
      by("preview").disabled = false;
      if (request.status === 200) {
        resolve(JSON.parse(request.responseText));
      } else {
        say(status, await reason(request.status, request.responseText), "problem");
        resolve(null);
      }
    });
    request.send(bytes);
  });
}

function show(report) {
  lastReport = report;
  by("report-title").textContent = report.dry_run ? "Preview: nothing was written" : report.ok ? "Result" : "Result: not completed";
  for (const name of ["planned", "imported", "skipped"]) by(name).textContent = report[name].toLocaleString("en");
  by("conflicts").textContent = report.conflicts.length.toLocaleString("en");
  table(report.counts);
  list("conflict-list", report.conflicts.map((found) => `${found.memory_type} ${found.id}`));
  list("warning-list", report.warnings);
  list("error-list", report.errors.map((found) => `${found.memory_type} ${found.id}: ${found.error_type}: ${found.message}`));
  by("save-map").disabled = Object.keys(report.id_map).length === 0;
  by("save-map").textContent = report.dry_run && chosen().get("id_strategy") === "new" ? "Download ID map (illustrative)" : "Download ID map";
  by("report").hidden = false;
  by("report").focus();
}

function table(counts) {
  const rows = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([store, count]) => {
      const row = document.createElement("tr");
      row.append(cell("th", store, "row"), cell("td", count.toLocaleString("en")));
      return row;
    });
  by("counts").tBodies[0].replaceChildren(...rows);
  by("counts").hidden = rows.length === 0;
}

function cell(kind, text, scope) {
  const made = document.createElement(kind);
  made.textContent = text;
  if (scope) made.scope = scope;
  return made;
}

function list(id, texts) {
  const items = texts.slice(0, SHOWN).map((text) => Object.assign(document.createElement("li"), { textContent: text }));
  if (texts.length > SHOWN) {
    items.push(Object.assign(document.createElement("li"), { textContent: `and ${(texts.length - SHOWN).toLocaleString("en")} more; the report has them all` }));
  }
  by(id).querySelector("ul").replaceChildren(...items);
  by(id).hidden = texts.length === 0;
}

by("save-map").addEventListener("click", () => saveJson(lastReport.id_map, "id-map.json"));
by("save-report").addEventListener("click", () => saveJson(lastReport, "import-report.json"));

/* Both ----------------------------------------------------------------------------------------------------------- */

function say(place, text, kind) {
  place.textContent = text;
  place.className = kind || "";
}

async function reason(status, text) {
  if (status === 0) return "The server did not answer. Is it still running?";
  if (status === 401) return "Your session has ended: sign in again.";
  try {
    return JSON.parse(text).detail;
  } catch (error) {
    return `The server answered with status ${status}.`;
  }
}

function saveJson(value, name) {
  save(new Blob([JSON.stringify(value, null, 2) + "\n"], { type: "application/json" }), name);
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
