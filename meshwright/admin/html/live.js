// Refreshes a page after changes. The server reports changes of the mesh as events (/api/v1/events). The script then loads the page
// again and replaces its content, but keeps opened parts, typed text, scroll positions and the focus. Every page also works without
// this script, and then shows the state at the time of its request.
"use strict";
(() => {
  const LEAST = 3000; // milliseconds between two loads, plus ten times the duration of the last load, so that a slow server gets fewer
  const OVERVIEW = ["/debug", "/debug/"];
  const OF = { // pages with frequent changes; for the other parts of an event, every page is loaded again
    figures: [...OVERVIEW, "/debug/traffic", "/debug/topology"],
    answers: [...OVERVIEW, "/debug/proxy", "/debug/proxy/show", "/debug/xds", "/debug/certs", "/debug/topology", "/debug/explain", "/debug/connectivity"],
  };
  const place = document.getElementById("live");
  const sendsHere = (form) => new URL(form.getAttribute("action") || "", location.href).pathname === location.pathname;
  if (!place || [...document.querySelectorAll("main form[method=post]")].some(sendsHere)) return;

  const button = document.createElement("button");
  const word = document.createElement("span");
  button.type = "button";
  word.setAttribute("role", "status");
  place.append(word, " ", button);
  let source = null, due = 0, wait = LEAST, paused = sessionStorage.getItem("paused") === "yes";

  const say = (text) => { if (word.textContent !== text) word.textContent = text; };
  const isTyping = () => Boolean(document.activeElement && document.activeElement.closest("main form"));

  // Names by which elements are found again although figures and ages change: the link, the links or first cell of the row, and the
  // number among several with the same name.
  function names(things) {
    const seen = new Map();
    return things.map((each) => {
      const row = each.closest("tr"), to = each.getAttribute("href");
      const links = row ? [...row.querySelectorAll("a[href]")].map((link) => link.getAttribute("href")) : [];
      const where = row ? links.join(" ") || (row.cells[0] || row).textContent : "";
      const name = JSON.stringify([each.tagName, to, where, row || to ? "" : each.textContent]);
      seen.set(name, (seen.get(name) || 0) + 1);
      return `${name} ${seen.get(name)}`;
    });
  }
  const summaries = (main) => [...main.querySelectorAll("details > summary")];
  const reached = (main) => [...main.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")];

  function kept(main) {
    const opened = summaries(main), may = reached(main);
    return {
      opened: new Set(names(opened).filter((_, at) => opened[at].parentNode.open)),
      scrolled: [...main.querySelectorAll(".picture, .table, pre")].map((each) => [each.scrollLeft, each.scrollTop]),
      typed: [...main.querySelectorAll("input, select")].map((each) => each.value),
      focused: names(may)[may.indexOf(document.activeElement)],
    };
  }

  function restore(main, was) {
    const now = summaries(main), may = reached(main);
    names(now).forEach((name, at) => { now[at].parentNode.open = was.opened.has(name); });
    main.querySelectorAll(".picture, .table, pre").forEach((each, at) => {
      if (was.scrolled[at]) [each.scrollLeft, each.scrollTop] = was.scrolled[at];
    });
    main.querySelectorAll("input, select").forEach((each, at) => { if (at in was.typed) each.value = was.typed[at]; });
    if (!was.focused) return;
    const again = may[names(may).indexOf(was.focused)];
    if (again) again.focus({preventScroll: true});
  }

  async function look() {
    due = 0;
    if (paused || document.hidden) return;
    if (isTyping()) { soon(); return; }
    const began = performance.now();
    const answer = await fetch(location.href, {headers: {Accept: "text/html"}, cache: "no-store"}).catch(() => null);
    wait = LEAST + 10 * (performance.now() - began);
    if (!answer || answer.status >= 500 || paused || isTyping()) return; // a 404 is shown, because it is the current state of a deleted object
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of ["main", "#as-of"]) {
      const before = document.querySelector(part), after = page.querySelector(part);
      if (!before || !after || before.innerHTML === after.innerHTML) continue;
      const was = kept(before);
      before.replaceChildren(...after.childNodes);
      restore(before, was);
    }
  }

  function soon() { if (!due) due = setTimeout(look, wait); }

  function changed(event) {
    const parts = JSON.parse(event.data).parts;
    if (parts.some((each) => !OF[each] || OF[each].includes(location.pathname))) soon();
  }

  function follow() {
    if (source || paused || document.hidden) return;
    source = new EventSource("/api/v1/events");
    source.addEventListener("changed", changed);
    source.onopen = () => { say("Live."); soon(); };
    source.onerror = () => say(source.readyState === EventSource.CLOSED ? "Not live: reload the page to try again." : "The server does not answer.");
  }

  function leave() { if (source) source.close(); source = null; }

  function show() {
    button.textContent = paused ? "Resume" : "Pause";
    if (paused) { leave(); say("Paused."); } else follow();
  }

  button.addEventListener("click", () => {
    paused = !paused;
    sessionStorage.setItem("paused", paused ? "yes" : "no");
    show();
  });
  document.addEventListener("visibilitychange", () => document.hidden ? leave() : follow());
  show();
})();
