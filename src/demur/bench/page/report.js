// The live part of the report: trade-off curves with filters and a tooltip, and their numbers.
// Everything that comes from files is set as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { methods, settings } = data;
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);

  function make(tag, attributes = {}, ...content) {
    const node = document.createElement(tag);
    return dress(node, attributes, content);
  }

  function draw(tag, attributes = {}, ...content) {
    const node = document.createElementNS(SVG, tag);
    return dress(node, attributes, content);
  }

  function dress(node, attributes, content) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...content);
    return node;
  }

  const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // ------------------------------------------------------------------ how methods look

  const polygon = (...points) => `M${points.map((p) => p.join(" ")).join("L")}Z`;
  const turned = (corners, start, radii) =>
    polygon(
      ...Array.from({ length: corners }, (_, i) => {
        const angle = start + (2 * Math.PI * i) / corners;
        const r = radii[i % radii.length];
        return [(r * Math.cos(angle)).toFixed(2), (r * Math.sin(angle)).toFixed(2)];
      })
    );
  const cross = (r, w) =>
    polygon([-w, -r], [w, -r], [w, -w], [r, -w], [r, w], [w, w], [w, r], [-w, r], [-w, w], [-r, w], [-r, -w], [-w, -w]);
  const up = -Math.PI / 2;
  // By matplotlib's letters, as the figures have them.
  const SHAPES = {
    o: () => "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
    s: () => polygon([-4.5, -4.5], [4.5, -4.5], [4.5, 4.5], [-4.5, 4.5]),
    "^": () => turned(3, up, [6.2]),
    v: () => turned(3, -up, [6.2]),
    "<": () => turned(3, Math.PI, [6.2]),
    ">": () => turned(3, 0, [6.2]),
    D: () => turned(4, 0, [5.8]),
    d: () => turned(4, up, [6.8, 3.4]),
    P: () => cross(5.8, 2),
    X: () => cross(5.8, 2),
    "*": () => turned(10, up, [7, 3]),
  };
  const shape = (i) => (SHAPES[methods[i].marker] || SHAPES.o)();
  const turn = (i) => (methods[i].marker === "X" ? " rotate(45)" : "");
  const dashes = (i, width = 1.9) => methods[i].dashes.map((d) => d * width).join(" ") || "none";

  function mark(i, x, y, name = "mark") {
    return draw("path", { class: `${name} m${i}`, d: shape(i), transform: `translate(${x} ${y})${turn(i)}` });
  }

  function swatch(i) {
    const line = draw("path", { class: `curve m${i}`, d: "M0 7H34", "stroke-dasharray": dashes(i) });
    return draw("svg", { class: "swatch", viewBox: "0 0 34 14", "aria-hidden": "true" }, line, mark(i, 17, 7));
  }

  // ------------------------------------------------------------------------- filters

  const chosen = {
    dataset: new Set(data.datasets),
    noise: new Set(data.noises),
    method: new Set(methods.map((_, i) => i)),
  };

  function filters(kind, label, values, title, picture = () => "") {
    const buttons = values.map((value) => {
      const button = make("button", { type: "button", class: "choice", "aria-pressed": "true" }, picture(value), title(value));
      button.dataset[kind] = title(value);
      button.addEventListener("click", () => {
        if (!chosen[kind].delete(value)) chosen[kind].add(value);
        update();
      });
      return button;
    });
    const setAll = (text, wanted) => {
      const button = make("button", { type: "button", class: "all", "aria-label": `${text} of ${label}` }, text);
      button.addEventListener("click", () => {
        chosen[kind] = new Set(wanted);
        update();
      });
      return button;
    };
    const head = make("span", {}, label);
    if (values.length > 1) head.append(setAll("all", values), setAll("none", []));
    byId("filters").append(head, make("div", { class: "choices", role: "group", "aria-label": label }, ...buttons));
    return () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(chosen[kind].has(values[i]))));
  }

  const refreshers = [
    filters("dataset", "Datasets", data.datasets, (name) => name),
    filters("noise", "Noise", data.noises, (name) => name),
    filters("method", "Methods", methods.map((_, i) => i), (i) => methods[i].name, swatch),
  ];

  // -------------------------------------------------------------------------- charts

  const MARGIN = { top: 26, right: 22, bottom: 38, left: 46 };
  const shownCurves = (setting) => setting.curves.filter((curve) => chosen.method.has(curve.method));
  const steps = (curve) => curve.accuracy.length - 1;
  const rejectedAt = (curve, i) => (curve.end * i) / Math.max(1, steps(curve));
  const nearestStep = (curve, x) => (curve.end ? clamp(Math.round((x / curve.end) * steps(curve)), 0, steps(curve)) : 0);

  function yScale(curves) {
    const all = curves.flatMap((c) => (c.point && c.point[1] !== null ? [...c.accuracy, c.point[1]] : c.accuracy));
    let low = Math.max(0, Math.floor(20 * Math.min(...all) + 1e-9) / 20);
    const high = Math.min(1, Math.ceil(20 * Math.max(...all) - 1e-9) / 20);
    low = Math.max(0, Math.min(low, high - 0.05));
    const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((s) => (high - low) / s <= 6);
    const ticks = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step < high + 1e-9; n++) ticks.push(n * step);
    return { low, high, ticks };
  }

  function chart(setting, width) {
    const curves = shownCurves(setting);
    const height = clamp(Math.round(width * 0.66), 210, 470);
    const { low, high, ticks } = yScale(curves);
    const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
    const x = (share) => MARGIN.left + share * inner.width;
    const y = (accuracy) => MARGIN.top + ((high - accuracy) / (high - low)) * inner.height;
    const svg = draw("svg", {
      viewBox: `0 0 ${width} ${height}`,
      height,
      tabindex: "0",
      role: "img",
      "aria-label": `${setting.title}: accuracy of the accepted against the share rejected; arrow keys read it`,
    });
    svg.append(axes(x, y, ticks, width, height));
    const lines = draw("g");
    for (const curve of [...curves].reverse()) {
      const points = curve.accuracy.map((a, i) => `${x(rejectedAt(curve, i)).toFixed(1)} ${y(a).toFixed(1)}`);
      const path = draw("path", { class: `curve m${curve.method}`, d: `M${points.join("L")}`, "stroke-dasharray": dashes(curve.method) });
      path.dataset.method = methods[curve.method].name;
      lines.append(path);
    }
    for (const curve of [...curves].reverse()) {
      if (curve.point === null || curve.point[1] === null) continue;
      const node = mark(curve.method, x(curve.point[0]), y(curve.point[1]));
      node.dataset.method = methods[curve.method].name;
      lines.append(node);
    }
    const cursor = draw("g");
    svg.append(lines, cursor);
    listen(svg, { setting, curves, x, y, lines, cursor, width, height, inner });
    return svg;
  }

  function axes(x, y, ticks, width, height) {
    const group = draw("g", { class: "axis" });
    const bottom = height - MARGIN.bottom;
    for (const tick of ticks) {
      group.append(draw("line", { class: "grid", x1: x(0), x2: x(1), y1: y(tick), y2: y(tick) }));
      group.append(draw("text", { x: x(0) - 7, y: y(tick) + 4, "text-anchor": "end" }, percent(tick, 0)));
    }
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      group.append(draw("line", { x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4 }));
      group.append(draw("text", { x: x(tick), y: bottom + 17, "text-anchor": "middle" }, percent(tick, 0)));
    }
    group.append(draw("line", { x1: x(0), x2: x(1), y1: bottom, y2: bottom }));
    group.append(draw("text", { class: "axis-title", x: x(0.5), y: height - 4, "text-anchor": "middle" }, "rejected"));
    group.append(draw("text", { class: "axis-title", x: 4, y: 12 }, "accuracy of the accepted"));
    return group;
  }

  // ------------------------------------------------------------------------- tooltip

  const tip = byId("tip");

  function listen(svg, view) {
    let at = null; // share rejected that the keys have come to
    const leave = () => {
      tip.hidden = true;
      view.cursor.replaceChildren();
      svg.classList.remove("faded");
    };
    const point = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = view.width / box.width;
      const px = (event.clientX - box.left) * scale;
      const py = (event.clientY - box.top) * scale;
      at = clamp((px - MARGIN.left) / view.inner.width, 0, 1);
      show(svg, view, at, py, event.clientX, event.clientY);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return leave();
      const step = { ArrowLeft: -0.01, ArrowRight: 0.01, Home: -1, End: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      at = at === null ? 0 : clamp(at + step, 0, 1);
      const box = svg.getBoundingClientRect();
      show(svg, view, at, null, box.left + (view.x(at) * box.width) / view.width, box.top + box.height / 3);
    });
  }

  function show(svg, view, at, py, clientX, clientY) {
    if (!view.curves.length) return;
    const read = view.curves.map((curve) => {
      const i = nearestStep(curve, at);
      return { curve, accuracy: curve.accuracy[i], rejected: rejectedAt(curve, i) };
    });
    // The pointer's nearest curve, or the best one for the keys.
    const away = (r) => (py === null ? -r.accuracy : Math.abs(view.y(r.accuracy) - py));
    const near = read.reduce((best, r) => (away(r) < away(best) ? r : best));
    const name = methods[near.curve.method].name;
    svg.classList.add("faded");
    for (const node of view.lines.children) node.classList.toggle("near", node.dataset.method === name);
    const px = view.x(near.rejected);
    view.cursor.replaceChildren(
      draw("line", { class: "cross", x1: px, x2: px, y1: MARGIN.top, y2: view.height - MARGIN.bottom }),
      draw("circle", { class: `dot m${near.curve.method}`, cx: px, cy: view.y(near.accuracy), r: 4.5 })
    );
    read.sort((a, b) => b.accuracy - a.accuracy || a.curve.method - b.curve.method);
    const rows = read.map((r) => {
      const row = make("tr", {}, make("td", {}, swatch(r.curve.method)), make("td", {}, methods[r.curve.method].name), make("td", {}, percent(r.accuracy)));
      row.dataset.method = methods[r.curve.method].name;
      if (r === near) row.className = "near";
      return row;
    });
    tip.replaceChildren(
      make("b", {}, `${percent(near.rejected)} rejected`),
      make("table", {}, ...rows),
      make("p", {}, `${name}: ${ownThreshold(near.curve)}`)
    );
    tip.hidden = false;
    place(svg, clientX, clientY);
  }

  function ownThreshold(curve) {
    if (curve.point === null) return "no threshold of its own is known";
    const [rejected, accuracy] = curve.point;
    if (accuracy === null) return "its own threshold rejects all";
    return `its own threshold rejects ${percent(rejected)}, accuracy ${percent(accuracy)}`;
  }

  function place(svg, clientX, clientY) {
    const box = tip.getBoundingClientRect();
    const plot = svg.getBoundingClientRect();
    const room = 8;
    const gap = 18;
    let left = clientX + gap;
    if (left + box.width > innerWidth - room) left = clientX - gap - box.width;
    let top = clientY + gap;
    if (top + box.height > innerHeight - room) top = clientY - gap - box.height;
    if (innerWidth < 640) {
      // Little room beside the pointer: stand below or above the chart, where it hides nothing.
      left = clientX - box.width / 2;
      top = plot.bottom + box.height + room < innerHeight ? plot.bottom : plot.top - box.height;
    }
    tip.style.left = `${clamp(left, room, Math.max(room, innerWidth - box.width - room))}px`;
    tip.style.top = `${clamp(top, room, Math.max(room, innerHeight - box.height - room))}px`;
  }

  // -------------------------------------------------------------------------- numbers

  const COLUMNS = [
    ["setting", (r) => r.setting, (v) => v],
    ["method", (r) => r.method, (v) => methods[v].name],
    ["accuracy of all", (r) => r.curve.accuracy[0], (v) => percent(v)],
    ["rejected", (r) => (r.curve.point ? r.curve.point[0] : null), (v) => (v === null ? "–" : percent(v))],
    ["accuracy of the accepted", (r) => (r.curve.point ? r.curve.point[1] : null), (v) => (v === null ? "–" : percent(v))],
    ["AURC", (r) => r.curve.aurc, (v) => v.toFixed(4)],
    ["runs", (r) => r.curve.runs, String],
  ];
  let order = { column: 0, down: false };

  function numbers(visible) {
    const rows = visible.flatMap((setting) =>
      shownCurves(setting).map((curve) => ({ setting: setting.title, method: curve.method, curve }))
    );
    const key = COLUMNS[order.column][1];
    const sign = order.down ? -1 : 1;
    rows.sort((a, b) => {
      const [p, q] = [key(a), key(b)];
      if (p === null || q === null) return (p === null) - (q === null);
      return sign * (p < q ? -1 : p > q ? 1 : 0);
    });
    const head = COLUMNS.map(([title], i) => {
      const button = make("button", { type: "button" }, title);
      button.addEventListener("click", () => {
        order = { column: i, down: order.column === i ? !order.down : i > 1 && title !== "AURC" };
        numbers(visible);
      });
      const cell = make("th", { scope: "col", class: i === 1 ? "text" : "" }, button);
      if (i === order.column) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      return cell;
    });
    const body = rows.map((row) =>
      make("tr", {}, ...COLUMNS.map(([, value, told], i) =>
        make(i ? "td" : "th", { class: i === 1 ? "text" : "" }, told(value(row)))
      ))
    );
    byId("numbers").replaceChildren(
      make("table", { class: "data" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))
    );
  }

  // --------------------------------------------------------------------------- ranks

  function ranks(found, width) {
    const n = found.methods.length;
    const left = Math.ceil(n / 2);
    const edge = clamp(width * 0.25, 96, 170);
    const x = (rank) => edge + ((rank - 1) / Math.max(1, n - 1)) * (width - 2 * edge);
    const top = 62;
    const names = top + 16 + 10 * found.groups.length + 20;
    const height = names + 21 * (left - 1) + 16;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `average ranks by ${found.name}` });
    const end = Math.min(width - 4, x(1 + found.critical));
    svg.append(
      draw("text", { x: x(1), y: 13 }, `critical difference ${found.critical.toFixed(2)}`),
      draw("path", { class: "leader rule", d: `M${x(1)} 18V28M${x(1)} 23H${end}${end < width - 4 ? "M" + end + " 18V28" : ""}` }),
      draw("path", { class: "leader rule", d: `M${x(1)} ${top}H${x(n)}` })
    );
    for (let rank = 1; rank <= n; rank++) {
      svg.append(
        draw("path", { class: "leader rule", d: `M${x(rank)} ${top}v-6` }),
        draw("text", { x: x(rank), y: top - 10, "text-anchor": "middle" }, String(rank))
      );
    }
    found.groups.forEach((group, i) => {
      const y = top + 14 + 10 * i;
      svg.append(draw("line", { class: "alike", x1: x(found.average[group[0]]) - 3, x2: x(found.average[group[group.length - 1]]) + 3, y1: y, y2: y }));
    });
    const best = found.average.map((_, i) => i).sort((a, b) => found.average[a] - found.average[b]);
    best.forEach((column, nth) => {
      const isLeft = nth < left;
      const y = names + 21 * (isLeft ? nth : n - 1 - nth);
      const px = x(found.average[column]);
      const to = isLeft ? edge - 12 : width - edge + 12;
      const parts = [methods[found.methods[column]].name, found.average[column].toFixed(2)];
      svg.append(
        draw("path", { class: "leader", d: `M${px} ${top}V${y}H${to}` }),
        mark(found.methods[column], px, top),
        draw("text", { x: to + (isLeft ? -5 : 5), y: y + 4, "text-anchor": isLeft ? "end" : "start" }, (isLeft ? parts : parts.reverse()).join("  "))
      );
    });
    return svg;
  }

  function drawRanks() {
    const home = byId("rank-charts");
    if (!home) return;
    const cards = data.ranks.map((found) => {
      const settingsTold = `${found.settings} setting${found.settings === 1 ? "" : "s"}`;
      const card = make("div", { class: "card chart" }, make("h3", {}, `By ${found.name}, ${settingsTold}`));
      return card;
    });
    home.replaceChildren(...cards);
    cards.forEach((card, i) => card.append(ranks(data.ranks[i], inside(card))));
  }

  // -------------------------------------------------------------------------- all of it

  function alone(setting, isSingle) {
    chosen.dataset = new Set(isSingle ? data.datasets : [setting.dataset]);
    chosen.noise = new Set(isSingle ? data.noises : [setting.noise]);
    update();
    byId("charts").scrollIntoView({ block: "nearest" });
  }

  function titled(setting, isSingle) {
    const button = make("button", { type: "button", title: isSingle ? "show all settings" : "show only this one, large" }, setting.title);
    button.addEventListener("click", () => alone(setting, isSingle));
    return make("div", { class: "card chart" }, make("h3", {}, button));
  }

  const inside = (card) => Math.max(220, Math.floor(card.clientWidth - 24));

  function update() {
    refreshers.forEach((refresh) => refresh());
    const visible = settings.filter((s) => chosen.dataset.has(s.dataset) && chosen.noise.has(s.noise) && shownCurves(s).length);
    const home = byId("charts");
    home.classList.toggle("single", visible.length === 1);
    byId("count").textContent = visible.length
      ? `${visible.length} of ${settings.length} settings, ${chosen.method.size} of ${methods.length} methods`
      : "";
    if (!visible.length) {
      home.replaceChildren(make("p", { class: "card empty" }, "Nothing is chosen: pick a dataset, a noise and a method above."));
    } else {
      const cards = visible.map((s) => titled(s, visible.length === 1));
      home.replaceChildren(...cards);
      const widths = cards.map(inside); // measured first, so that the page is laid out once
      cards.forEach((card, i) => card.append(chart(visible[i], widths[i])));
    }
    tip.hidden = true;
    numbers(visible);
  }

  if (!settings.length) return;
  update();
  drawRanks();
  let width = innerWidth;
  let waiting = false;
  addEventListener("resize", () => {
    if (waiting || innerWidth === width) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      width = innerWidth;
      update();
      drawRanks();
    });
  });
  addEventListener("scroll", () => (tip.hidden = true), { passive: true });
})();
