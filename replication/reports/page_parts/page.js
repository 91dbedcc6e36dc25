/* Draws one partition's logs at any moment and steps through its events. Text from the evidence only
   ever becomes text nodes. Column numbers below are those that page_data.py writes. */
"use strict";
(() => {
  const TIME = 0, WORDS = 1, MERGED = 2, GRADE = 4, MARK = 5, BROKER = 6, RULE = 7, FILE = 8,
    LINE = 9, BYTE = 10, CHANGE = 11;
  const STATUS = 0, EPOCH = 1, START = 2, END = 3, HIGH = 4, SPANS = 5, EXACT = 6;
  const KEYFRAME = 100, ROWS_AT_ONCE = 100, KEYS_AT_ONCE = 150;
  const PROMISES = {
    committed_records_survive: "Committed records survive",
    acknowledged_records_survive: "Acknowledged records survive",
    log_matching: "Replicas agree on every record",
    consumed_records_survive: "Consumed records survive",
    single_leader_per_epoch: "One leader per leader epoch",
    leader_epochs_monotonic: "Leader epochs only rise",
    leader_high_watermark_monotonic: "A leader's high watermark only rises",
    high_watermark_within_log: "The high watermark stays within the log",
    isr_within_assignment: "Only assigned replicas are in the ISR",
    leader_in_isr: "The leader is in the ISR",
    version_conformance: "Replicas act by the rules of their Kafka version",
  };
  const VERDICTS = { V: "✕ broken", U: "? not decided", H: "✓ holds", "-": "" };
  const LOSSES = { lost: "lost", undetermined: "gone", recoverable: "recoverable",
    at_risk: "at risk", recovered: "was missing" };
  const MADE = { acks_all: "Acknowledged, acks=all", acks_1: "Acknowledged, acks=1",
    consumed: "Given to a consumer" };

  const byId = (id) => document.getElementById(id);
  const parsed = (id) => JSON.parse(byId(id).textContent);
  const node = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const shape = (name, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }
  const grouped = (number) => number === null || number === undefined ? "–" : number.toLocaleString("en");
  const offsets = (first, end) => end === first + 1 ? grouped(first) : `${grouped(first)}–${grouped(end - 1)}`;
  const set = (numbers) => numbers === null ? "not known" : `{${numbers.join(", ")}}`;

  const overview = parsed("overview-data");
  const rowOf = new Map(overview.rows.map((row) => [row[0], row]));
  let allStates = null;
  const statesData = () => (allStates = allStates || parsed("states-data"));
  const stories = new Map();

  // --- The state of one partition at any moment -------------------------------------------------

  function storyOf(index) {
    if (stories.has(index)) return stories.get(index);
    const told = byId(`story-${index}`) ? parsed(`story-${index}`) : endOnly(statesData().states[index]);
    told.frames = [];
    let view = { replicas: new Map(), registration: [null, null, null], dropped: [], promised: [], derived: new Map() };
    told.moments.forEach((moment, step) => {
      view = advanced(view, moment[CHANGE], step);
      if (step % KEYFRAME === 0) told.frames.push(view);
    });
    told.keys = told.moments.map((moment, step) => moment[MARK] ? step : -1).filter((step) => step >= 0);
    told.scale = offsetScale(told, statesData().states[index]);
    stories.set(index, told);
    return told;
  }

  // A partition without its events: one moment, the end.
  function endOnly(state) {
    const replicas = {};
    for (const [number, start, end, high, spans, stopped] of state ? state.replicas : []) {
      replicas[number] = { 0: stopped ? "stopped" : "", 2: start, 3: end, 4: high,
        5: spans.map(([epoch, first, last]) => [epoch, first, last, null, true]), 6: true };
    }
    const derived = {};
    for (const [number, ...value] of (state && state.derived) || []) (derived[number] = derived[number] || [0]).push(value);
    const change = { replicas, derived, registration: state ? state.registration : [null, null, null] };
    return { base: 0, total: 1, rules: [], files: [], events: {}, endOnly: true,
      moments: [[null, "The state at the end of the evidence.", 1, 0, 0, null, null, null, null, null, null, change]] };
  }

  // A new view; what does not change is shared with the old one.
  function advanced(view, change, step) {
    const next = { ...view, changed: new Set(), step };
    if (change.replicas) {
      next.replicas = new Map(view.replicas);
      for (const [number, columns] of Object.entries(change.replicas)) {
        const replica = (view.replicas.get(+number) || ["", null, 0, null, null, [], false]).slice();
        for (const [column, value] of Object.entries(columns)) replica[column] = value;
        next.replicas.set(+number, replica);
        next.changed.add(+number);
      }
    }
    if (change.registration) next.registration = change.registration;
    if (change.dropped) {
      next.dropped = view.dropped.concat(change.dropped.map((row) => [...row, step]));
    }
    if (change.promised) next.promised = change.promised;
    if (change.derived) {
      next.derived = new Map(view.derived);
      for (const [number, [kept, ...values]] of Object.entries(change.derived)) {
        next.derived.set(+number, (view.derived.get(+number) || []).slice(0, kept).concat(values));
      }
    }
    return next;
  }

  function viewAt(told, step) {
    let at = Math.floor(step / KEYFRAME);
    let view = told.frames[at];
    for (at = at * KEYFRAME + 1; at <= step; at++) view = advanced(view, told.moments[at][CHANGE], at);
    return view;
  }

  // --- One offset axis: to scale, or with long uneventful stretches shortened --------------------

  function offsetScale(told, state) {
    const bounds = new Set();
    let low = Infinity, high = -Infinity, narrow = Infinity;
    const range = (first, end, matters) => {
      if (end <= first) return;
      bounds.add(first);
      low = Math.min(low, first);
      high = Math.max(high, end);
      if (matters) { bounds.add(end); narrow = Math.min(narrow, end - first); }
    };
    for (const moment of told.moments) {
      const change = moment[CHANGE];
      for (const columns of Object.values(change.replicas || {})) {
        for (const span of columns[SPANS] || []) range(span[1], span[2], false);
        if (columns[HIGH]) high = Math.max(high, columns[HIGH]);
      }
      for (const row of change.dropped || []) range(row[1], row[2], true);
      for (const row of change.promised || []) range(row[1], row[2], false);
    }
    for (const row of (state && state.losses) || []) range(row[0], row[1], true);
    for (const row of (state && state.divergences) || []) range(row[0], row[1], true);
    if (low === Infinity) { low = 0; high = Math.max(high, 1); }
    bounds.add(low);
    bounds.add(high);
    let knots = [...bounds].filter((offset) => offset >= low && offset <= high).sort((a, b) => a - b);
    const shortened = high - low > 80 && narrow / (high - low) < 0.02 && knots.length < 400;
    if (!shortened) knots = [low, high];
    const places = [0];
    for (let i = 1; i < knots.length; i++) {
      const length = knots[i] - knots[i - 1];
      places.push(places[i - 1] + (shortened ? 1.2 + Math.log2(length) : length));
    }
    const whole = places[places.length - 1] || 1;
    const at = (offset) => {
      if (offset <= knots[0]) return 0;
      if (offset >= knots[knots.length - 1]) return 1;
      let a = 0, b = knots.length - 1;
      while (b - a > 1) {
        const middle = (a + b) >> 1;
        if (knots[middle] <= offset) a = middle; else b = middle;
      }
      const share = (offset - knots[a]) / (knots[b] - knots[a]);
      return (places[a] + share * (places[b] - places[a])) / whole;
    };
    return { low, high, at, shortened, bounds: [...bounds].sort((a, b) => a - b) };
  }

  // --- Drawing the logs ---------------------------------------------------------------------------

  function epochShades(told, state) {
    const epochs = new Set();
    const take = (epoch) => { if (epoch !== null) epochs.add(epoch); };
    for (const moment of told.moments) {
      for (const columns of Object.values(moment[CHANGE].replicas || {})) {
        for (const span of columns[SPANS] || []) take(span[0]);
        if (columns[EPOCH] !== undefined) take(columns[EPOCH]);
      }
    }
    const order = [...epochs].sort((a, b) => a - b);
    return (epoch) => epoch === null ? "en" : `e${Math.max(0, order.indexOf(epoch)) % 6}`;
  }

  const LABEL = 19, BAR = 26, GAP = 17, MARGIN = 2;

  function drawLogs(told, state, view, width) {
    const inner = width - 2 * MARGIN;
    const x = (offset) => MARGIN + told.scale.at(offset) * inner;
    const svg = shape("svg", { role: "img", "aria-label": lanesInWords(view) });
    svg.append(patterns());
    const back = shape("g"), front = shape("g");
    svg.append(back, front);
    const losses = (state && state.losses) || [];
    let y = drawAxis(front, told.scale, losses, x, width);
    const top = y - 6;
    y = drawPromises(front, view.promised, x, y);
    const numbers = [...view.replicas.keys()].sort((a, b) => a - b);
    for (const number of numbers) y = drawLane(front, told, view, number, x, y, width);
    if (!numbers.length) {
      front.append(shape("text", { x: MARGIN, y: y + 16, class: "soft" }, "No replica has been seen yet."));
      y += 34;
    }
    y = drawLosses(back, front, state, x, top, y - 4, width);
    svg.setAttribute("height", y + 4);
    svg.setAttribute("viewBox", `0 0 ${width} ${y + 4}`);
    return svg;
  }

  function patterns() {
    const lines = (id, kind, turn, step) => shape("pattern",
      { id, width: step, height: step, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` },
      shape("line", { x1: 0, y1: 0, x2: 0, y2: step, class: kind }));
    return shape("defs", {}, lines("removed", "stripes", 45, 6), lines("content", "other", -45, 5));
  }

  function drawAxis(group, scale, losses, x, width) {
    const wanted = [];
    for (const row of losses) wanted.push(row[0], row[1]);
    wanted.push(scale.low, scale.high, ...scale.bounds, ...roundOffsets(scale));
    const taken = [];
    group.append(shape("text", { x: MARGIN, y: 12, class: "soft small" }, "Offset"));
    for (const offset of wanted) {
      if (offset < scale.low || offset > scale.high) continue;
      const at = x(offset), text = grouped(offset), half = text.length * 3.6 + 7;
      const centre = Math.min(Math.max(at, half), width - half);
      if (taken.some(([a, b]) => centre - half < b && centre + half > a)) continue;
      taken.push([centre - half, centre + half]);
      group.append(
        shape("text", { x: centre, y: 30, "text-anchor": "middle", class: "soft small" }, text),
        shape("line", { x1: at, x2: at, y1: 35, y2: 40, class: "grid" }));
    }
    group.append(shape("line", { x1: MARGIN, x2: width - MARGIN, y1: 40, y2: 40, class: "base" }));
    return 52;
  }

  function roundOffsets(scale) {
    const size = scale.high - scale.low;
    const power = 10 ** Math.max(0, Math.floor(Math.log10(size / 4 || 1)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => size / k <= 8) || power * 10;
    const found = [];
    for (let o = Math.ceil(scale.low / step) * step; o <= scale.high && found.length < 20; o += step) found.push(o);
    return found;
  }

  function drawPromises(group, promised, x, y) {
    const kinds = [...new Set(promised.map((row) => row[0]))];
    for (const kind of kinds) {
      group.append(shape("text", { x: MARGIN, y: y + 11, class: "soft small" }, MADE[kind] || kind));
      for (const [how, first, end] of promised) {
        if (how !== kind) continue;
        const shade = kind === "acks_all" ? "all" : kind === "acks_1" ? "one" : "given";
        const bar = shape("rect", { x: x(first), y: y + 17, height: 5, rx: 1.5,
          width: Math.max(1.5, x(end) - x(first)), class: shade });
        bar.append(shape("title", {}, `${MADE[kind] || kind}: ${offsets(first, end)}`));
        group.append(bar);
      }
      y += 34;
    }
    return y;
  }

  function roleWords(view, number) {
    const replica = view.replicas.get(number), [leader, epoch] = view.registration;
    const status = replica[STATUS], own = replica[EPOCH];
    const inEpoch = own === null ? "" : `, leader epoch ${own}`;
    if (status === "leader") {
      const late = leader !== number && epoch !== null && own !== null && epoch > own;
      return `leader${inEpoch}${late ? " (superseded)" : ""}`;
    }
    if (status === "follower") return `follower${inEpoch}`;
    return { stopped: "stopped", crashed: "crashed", down: "not running", started: "running, role not known yet",
      "": "seen, role not known" }[status] || status;
  }

  function drawLane(group, told, view, number, x, y, width) {
    const replica = view.replicas.get(number), bar = y + LABEL;
    const [, , start, end, high, , exact] = replica;
    const name = shape("text", { x: MARGIN + (view.changed.has(number) ? 13 : 0), y: y + 12, class: "strong" }, `Broker ${number}`);
    const facts = end === null ? "log end not known yet"
      : `${end > start ? `holds ${exact ? "" : "at least "}${offsets(start, end)}` : `empty at ${grouped(end)}`}, high watermark ${grouped(high)}`;
    const words = width > 560 ? `${roleWords(view, number)}  ·  ${facts}` : roleWords(view, number);
    name.append(shape("tspan", { class: "soft", "font-weight": 400, dx: 7 }, words));
    group.append(name);
    if (view.changed.has(number)) group.append(shape("circle", { cx: MARGIN + 4.5, cy: y + 8, r: 4, class: "changed" }));
    group.append(shape("line", { x1: MARGIN, x2: width - MARGIN, y1: bar + BAR, y2: bar + BAR, class: "base" }));
    if (start > told.scale.low && end !== null) {
      group.append(shape("rect", { x: MARGIN, y: bar + 4, height: BAR - 8, width: x(start) - MARGIN, fill: "url(#removed)" }));
    }
    for (const row of view.dropped) {
      if (row[0] !== number) continue;
      const now = row[4] === view.step;
      const ghost = shape("rect", { x: x(row[1]) + 1, y: bar + 3, height: BAR - 6, rx: 2,
        width: Math.max(2, x(row[2]) - x(row[1]) - 2), class: now ? "dropped now" : "dropped" });
      ghost.append(shape("title", {}, `${row[3]}: ${offsets(row[1], row[2])}`));
      group.append(ghost);
    }
    for (const span of replica[SPANS]) drawSpan(group, told, span, x, bar);
    if (!exact && end !== null) {
      group.append(shape("line", { x1: x(end) + 3, x2: x(end) + 19, y1: bar + BAR / 2, y2: bar + BAR / 2, class: "onward" }));
    }
    if (high !== null) {
      const at = x(high);
      group.append(shape("line", { x1: at, x2: at, y1: bar - 3, y2: bar + BAR + 3, class: "high" }),
        shape("path", { d: `M${at - 4.5} ${bar - 5}h9l-4.5 6z`, class: "flag" }));
    }
    for (const value of view.derived.get(number) || []) drawDerived(group, value, x(value[1]), bar);
    return bar + BAR + GAP;
  }

  const derivedWords = ([what, offset, epoch, rule]) => `${{
    high_watermark: `high watermark at least ${grouped(offset)}`,
    epoch_entry: `leader epoch ${epoch} begins at ${grouped(offset)}`,
    truncation: `log cut at ${grouped(offset)}` }[what]}, derived by ${rule}`;

  // What no line tells and a rule forces: dashed, so that nobody takes it for observed.
  function drawDerived(group, value, at, bar) {
    const [top, bottom] = value[0] === "epoch_entry" ? [bar + BAR - 7, bar + BAR + 3] : [bar - 3, bar + BAR + 3];
    group.append(shape("line", { x1: at, x2: at, y1: top, y2: bottom, class: `derived ${value[0]}` },
      shape("title", {}, derivedWords(value))));
  }

  function drawSpan(group, told, [epoch, first, end, content, seen], x, bar) {
    const left = x(first), wide = Math.max(1.5, x(end) - left);
    const box = { x: left + 0.5, y: bar + 0.5, height: BAR - 1, width: Math.max(1, wide - 1), rx: 2 };
    const text = epoch === null ? (seen ? "no leader epoch" : "not seen") : `leader epoch ${epoch}`;
    const rect = shape("rect", { ...box, class: `span ${told.shade(epoch)}${seen ? "" : " unseen"}` });
    rect.append(shape("title", {}, `${offsets(first, end)}: ${text}${seen ? "" : ", not seen, follows from the log's end"}${content ? ", other contents" : ""}`));
    group.append(rect);
    if (content) group.append(shape("rect", { ...box, fill: "url(#content)", "pointer-events": "none" }));
    const label = [text, epoch === null ? "" : `epoch ${epoch}`, epoch === null ? "" : `${epoch}`]
      .find((candidate) => candidate.length * 6.9 + 10 < wide);
    if (label) {
      group.append(shape("text", { x: left + wide / 2, y: bar + BAR / 2 + 4.5, "text-anchor": "middle", "pointer-events": "none" }, label));
    }
  }

  function drawLosses(back, front, state, x, top, y, width) {
    const rows = [];
    for (const [first, end, status, id] of (state && state.losses) || []) {
      rows.push([first, end, LOSSES[status] || status, ["lost", "undetermined"].includes(status) ? "lost" : "warned", id]);
    }
    for (const [first, end, status, between, id] of (state && state.divergences) || []) {
      if (status !== "settled") continue;
      rows.push([first, end, `brokers ${between.join(" and ")} differ`, "lost", id]);
    }
    if (!rows.length) return y;
    const levels = [], banded = new Set();
    for (const [first, end, words, kind, id] of rows.slice(0, 60)) {
      const left = x(first), wide = Math.max(3, x(end) - left), text = `${words}: ${offsets(first, end)}`;
      const half = text.length * 3.5 + 6;
      const centre = Math.min(Math.max(left + wide / 2, half), width - half);
      let level = levels.findIndex((edge) => centre - half > edge);
      if (level < 0) { level = levels.length; levels.push(0); }
      levels[level] = centre + half;
      const base = y + 12 + level * 22;
      if (!banded.has(`${first} ${end}`)) {
        back.append(shape("rect", { x: left, y: top, width: wide, height: y - top, class: kind }));
        banded.add(`${first} ${end}`);
      }
      front.append(shape("line", { x1: left, x2: left + wide, y1: y + 1, y2: y + 1, class: `${kind}-line` }),
        shape("text", { x: centre, y: base + 8, "text-anchor": "middle", class: `${kind}-word`, "data-finding": id }, text));
    }
    return y + 12 + levels.length * 22;
  }

  function lanesInWords(view) {
    const parts = [...view.replicas.keys()].sort((a, b) => a - b).map((number) => {
      const [, , start, end, high] = view.replicas.get(number);
      const held = end === null ? "log end not known" : end > start ? `offsets ${start} to ${end - 1}` : "no records";
      return `Broker ${number}: ${roleWords(view, number)}, ${held}, high watermark ${high === null ? "not known" : high}`;
    });
    return `The replicas' logs. ${parts.join(". ")}.`;
  }

  // --- Time: one step per event, long pauses wider -------------------------------------------------

  function timePlaces(told) {
    const places = [0];
    let last = null;
    told.moments.forEach((moment, step) => {
      const now = moment[TIME];
      const pause = now !== null && last !== null && now > last ? Math.log(1 + (now - last) / 40) : 0;
      if (step) places.push(places[step - 1] + 1 + 0.8 * pause);
      if (now !== null) last = Math.max(last === null ? now : last, now);
    });
    const whole = places[places.length - 1] || 1;
    return places.map((place) => place / whole);
  }

  const clock = (told, moment, fine) => moment[TIME] === null ? null
    : new Date(told.base + moment[TIME]).toISOString().slice(11, fine ? 23 : 19);

  function drawTime(told, width) {
    const brokers = new Set();
    for (const moment of told.moments) for (const number of Object.keys(moment[CHANGE].replicas || {})) brokers.add(+number);
    const lanes = [...brokers].sort((a, b) => a - b);
    const gutter = width > 560 ? 86 : 70, right = width - 12;
    const places = told.places = told.places || timePlaces(told);
    const x = told.timeX = (step) => gutter + 10 + places[step] * (right - gutter - 10);
    const row = (position) => 14 + position * 26;
    const svg = shape("svg", { "aria-hidden": "true" });
    svg.append(shape("text", { x: 0, y: row(0) + 4, class: "soft" }, "Controller"));
    lanes.forEach((number, i) => svg.append(shape("text", { x: 0, y: row(i + 1) + 4, class: "soft" }, `Broker ${number}`)));
    lanes.forEach((number, i) => drawLife(svg, told, number, row(i + 1), x));
    told.moments.forEach((moment, step) => {
      if (!moment[MARK]) return;
      const lane = moment[BROKER] === null ? 0 : lanes.indexOf(moment[BROKER]) + 1;
      const drawn = markOf(moment[MARK], x(step), row(lane));
      drawn.append(shape("title", {}, moment[WORDS]));
      svg.append(drawn);
    });
    const rail = row(lanes.length + 1);
    svg.append(shape("line", { x1: x(0), x2: right, y1: rail, y2: rail, class: "rail" }));
    told.playhead = shape("g", {},
      shape("line", { y1: 2, y2: rail, class: "head" }), shape("circle", { cy: rail, r: 8, class: "knob" }));
    told.done = shape("line", { x1: x(0), y1: rail, y2: rail, class: "rail done" });
    svg.append(told.done, told.playhead);
    drawClock(svg, told, x, rail + 27, right);
    svg.setAttribute("height", rail + 34);
    svg.setAttribute("viewBox", `0 0 ${width} ${rail + 34}`);
    return svg;
  }

  function drawLife(svg, told, number, y, x) {
    let status = null, epoch = null, since = 0;
    const close = (step) => {
      if (status === null || step < since) return;
      const from = x(since), to = x(step);
      if (status === "leader") {
        svg.append(shape("rect", { x: from, y: y - 6, height: 12, rx: 2, width: Math.max(1, to - from), class: `led ${told.shade(epoch)}` }));
        const words = epoch === null ? "leads" : `leads epoch ${epoch}`;
        if (to - from > words.length * 6.6 + 22) svg.append(shape("text", { x: from + 8, y: y + 4, class: "small" }, words));
      } else {
        const down = ["stopped", "crashed", "down", ""].includes(status);
        svg.append(shape("line", { x1: from, x2: to, y1: y, y2: y, class: down ? "down" : "up" }));
      }
    };
    told.moments.forEach((moment, step) => {
      const columns = (moment[CHANGE].replicas || {})[number];
      if (!columns || (columns[STATUS] === undefined && columns[EPOCH] === undefined)) return;
      close(step);
      if (columns[STATUS] !== undefined) status = columns[STATUS];
      if (columns[EPOCH] !== undefined) epoch = columns[EPOCH];
      since = step;
    });
    close(told.moments.length - 1);
  }

  function markOf(mark, x, y) {
    const at = (d, kind) => shape("path", { d, class: `m ${kind}`, transform: `translate(${x} ${y})` });
    switch (mark) {
      case "election": return at("M0-7L7 0 0 7-7 0z", "");
      case "unclean": return at("M0-8L8 0 0 8-8 0z", "alarm");
      case "leaderless": return at("M0-6L6 0 0 6-6 0z", "hollow");
      case "isr": return at("M-4.5-4.5h9v9h-9z", "");
      case "crash": return at("M-5-5L5 5M5-5L-5 5", "cross");
      case "stop": return at("M-4.5-4.5h9v9h-9z", "hollow");
      case "start": return at("M-4.5-6L6 0-4.5 6z", "");
      case "cut": return at("M-6-5h12L0 7z", "alarm");
      case "copy": return at("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "hollow");
      default: return at("M-2-6h4v12h-4z", "");
    }
  }

  function drawClock(svg, told, x, y, right) {
    let edge = -Infinity, shown = null, latest = -Infinity;
    const times = told.moments.map((m) => m[TIME]).filter((t) => t !== null);
    const fine = times.length > 1 && Math.max(...times.slice(0, 50000)) - Math.min(...times.slice(0, 50000)) < 4000;
    const half = fine ? 38 : 27;
    told.moments.forEach((moment, step) => {
      const text = clock(told, moment, fine);
      if (text === null || text === shown || moment[TIME] < latest || x(step) - half < edge + 14 || x(step) + half > right + 12) return;
      svg.append(shape("text", { x: x(step), y, "text-anchor": "middle", class: "soft small" }, text));
      edge = x(step) + half;
      shown = text;
      latest = moment[TIME];
    });
  }

  // --- The panel ---------------------------------------------------------------------------------

  const now = { index: null, step: 0, told: null, state: null };

  function open(index, step, focus) {
    const row = rowOf.get(index);
    const told = storyOf(index);
    const state = statesData().states[index] || null;
    told.shade = told.shade || epochShades(told, state);
    Object.assign(now, { index, told, state, keysShown: KEYS_AT_ONCE });
    byId("partition-name").textContent = `Partition ${row ? row[1] : ""}`;
    byId("partition-facts").textContent = factsOf(state);
    byId("story").classList.toggle("hidden", !!told.endOnly);
    byId("key-moments").classList.toggle("hidden", !!told.endOnly);
    byId("table-title").textContent = told.endOnly ? "The replicas at the end of the evidence" : "The replicas at this moment";
    byId("scale-note").textContent = [
      told.endOnly
        ? "Of this partition the page has the end state only, not its events."
        : "Events are in the order in which one can have caused the other; times are those of each broker's own clock.",
      told.scale.shortened ? "The offset axis is not to scale: long uneventful stretches are drawn shorter." : "",
    ].join(" ").trim();
    drawLegend(told, state);
    showVerdicts(state);
    layOut();
    show(step === undefined ? told.opening ?? told.moments.length - 1 : step);
    showKeys();
    for (const tr of byId("rows").children) tr.classList.toggle("now", tr.dataset.index === String(index));
    if (focus) {
      byId("partition").scrollIntoView({ block: "start" });
      byId("partition-name").focus({ preventScroll: true });
    }
  }

  function factsOf(state) {
    if (!state) return "";
    const [leader, epoch, isr] = state.registration;
    return [
      leader === null ? "no leader at the end" : `leader ${leader} at the end`,
      epoch === null ? "" : `leader epoch ${epoch}`, `ISR ${set(isr)}`,
      state.assigned ? `replicas ${set(state.assigned)}` : "",
      state.min === null ? "" : `min.insync.replicas ${state.min}`,
    ].filter(Boolean).join(", ");
  }

  function layOut() {
    const told = now.told, width = Math.max(280, byId("partition").clientWidth);
    now.width = width;
    if (!told.endOnly) byId("timeline").replaceChildren(drawTime(told, width));
    byId("timeline").setAttribute("aria-valuemax", told.moments.length);
  }

  function show(step) {
    const told = now.told, count = told.moments.length;
    step = Math.min(Math.max(step, 0), count - 1);
    now.step = step;
    const view = viewAt(told, step), moment = told.moments[step];
    byId("drawing").replaceChildren(drawLogs(told, now.state, view, now.width));
    showReplicas(view);
    if (told.endOnly) { remember(); return; }
    const at = told.timeX(step);
    told.playhead.setAttribute("transform", `translate(${at} 0)`);
    told.done.setAttribute("x2", at);
    const slider = byId("timeline");
    slider.setAttribute("aria-valuenow", step + 1);
    slider.setAttribute("aria-valuetext", `Event ${step + 1} of ${count}: ${moment[WORDS]}`);
    byId("position").textContent = `Event ${grouped(step + 1)} of ${grouped(count)}`;
    showMoment(told, moment, step);
    byId("first").disabled = byId("back").disabled = step === 0;
    byId("last").disabled = byId("forward").disabled = step === count - 1;
    byId("key-back").disabled = !told.keys.some((key) => key < step);
    byId("key-forward").disabled = !told.keys.some((key) => key > step);
    for (const button of byId("keys").querySelectorAll("button")) {
      if (+button.dataset.step === step) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    }
    remember();
  }

  function showMoment(told, moment, step) {
    const when = [`Event ${grouped(step + 1)} of ${grouped(told.moments.length)}`];
    if (moment[TIME] !== null) when.push(`${new Date(told.base + moment[TIME]).toISOString().replace("T", " ").replace("Z", "")} ${told.clock}`);
    if (moment[MERGED] > 1) when.push(`with ${grouped(moment[MERGED] - 1)} routine events before it`);
    if (moment[RULE] !== null) when.push(`rule: ${told.rules[moment[RULE]]}`);
    const parts = [node("p", { class: "when" }, when.join("  ·  ")), node("p", { class: "event" }, moment[WORDS])];
    if (moment[FILE] === null) {
      parts.push(node("p", { class: "source" }, "Put together from the evidence as a whole; no single line says it."));
    } else {
      const line = moment[LINE] !== null ? `, line ${moment[LINE]}` : moment[BYTE] !== null ? `, byte ${moment[BYTE]}` : "";
      parts.push(node("p", { class: "source" }, "Evidence: ",
        node("span", { class: "place" }, told.files[moment[FILE]] + line), moment[GRADE] ? " (traced)" : ""));
      const quote = (told.quotes || {})[step];
      if (quote) parts.push(node("pre", {}, quote));
    }
    byId("moment").replaceChildren(...parts);
  }

  function showReplicas(view) {
    const isr = view.registration[2], rows = [];
    for (const number of [...view.replicas.keys()].sort((a, b) => a - b)) {
      const [, , start, end, high, spans, exact] = view.replicas.get(number);
      const held = spans.map(([epoch, first, last, content, seen]) =>
        `${epoch === null ? (seen ? "no epoch" : "not seen") : `epoch ${epoch}`}: ${offsets(first, last)}${content ? " (other contents)" : ""}`);
      rows.push(node("tr", {}, node("th", { scope: "row" }, String(number)), node("td", {}, roleWords(view, number)),
        node("td", {}, isr === null ? "–" : isr.includes(number) ? "yes" : "no"),
        node("td", { class: "number" }, end === null ? "–" : grouped(start)),
        node("td", { class: "number" }, end === null || exact ? grouped(end) : `≥ ${grouped(end)}`),
        node("td", { class: "number" }, grouped(high)),
        node("td", {}, held.slice(0, 12).join("; ") + (held.length > 12 ? `; and ${held.length - 12} more` : "") || "–")));
    }
    byId("replicas").replaceChildren(...rows);
    const told = [...view.derived.keys()].sort((a, b) => a - b).flatMap((number) =>
      view.derived.get(number).slice(-12).map((value) => node("li", {}, `Broker ${number}: ${derivedWords(value)}`)));
    byId("derived").replaceChildren(...told);
    byId("derived-values").classList.toggle("hidden", !told.length);
  }

  function showVerdicts(state) {
    const strings = statesData().strings;
    const rows = ((state && state.verdicts) || []).map(([name, verdict, reason, settled]) => {
      const wanted = settled.length ? ` Would settle it: ${settled.map((s) => strings[s]).join("; ")}.` : "";
      return node("tr", {}, node("th", { scope: "row" }, PROMISES[strings[name]] || strings[name]),
        node("td", { class: `verdict ${verdict}` }, VERDICTS[verdict]), node("td", {}, `${strings[reason]}.${wanted}`));
    });
    byId("verdicts").replaceChildren(...rows);
  }

  function showKeys() {
    const told = now.told, every = byId("routine").checked;
    const steps = every ? told.moments.map((_, step) => step) : told.keys;
    const items = steps.slice(0, now.keysShown).map((step) => {
      const moment = told.moments[step];
      const button = node("button", { type: "button", "data-step": step, "aria-current": step === now.step ? "step" : null },
        node("time", {}, clock(told, moment, true) || "–"), node("span", {}, moment[WORDS]));
      return node("li", {}, button);
    });
    byId("keys").replaceChildren(...items);
    byId("more-keys").classList.toggle("hidden", steps.length <= now.keysShown);
  }

  function drawLegend(told, state) {
    const swatch = (words, ...shapes) => node("li", {}, shape("svg", { "aria-hidden": "true", viewBox: "0 0 22 14" }, ...shapes), words);
    const box = (kind, extra) => shape("rect", { x: 0.5, y: 0.5, width: 21, height: 13, rx: 2, class: kind, ...extra });
    const some = (test) => told.moments.some((m) => Object.values(m[CHANGE].replicas || {}).some((c) => (c[SPANS] || []).some(test)));
    const items = [
      swatch("records of one leader epoch", box("span e0")),
      some((span) => !span[4]) ? swatch("held, but not seen in a copy", box("span en unseen")) : null,
      told.moments.some((m) => Object.values(m[CHANGE].replicas || {}).some((c) => c[EXACT] === false && c[END]))
        ? swatch("may hold more", shape("line", { x1: 3, x2: 20, y1: 7, y2: 7, class: "onward" })) : null,
      some((span) => span[3]) ? swatch("other contents at those offsets", box("span e0"), box("", { fill: "url(#content)" })) : null,
      swatch("high watermark", shape("line", { x1: 11, x2: 11, y1: 2, y2: 14, class: "high" }), shape("path", { d: "M6.500 0h9l-4.500 6z", class: "flag" })),
      told.moments.some((m) => Object.keys(m[CHANGE].derived || {}).length)
        ? swatch("derived by a rule, not observed", shape("line", { x1: 11, x2: 11, y1: 0, y2: 14, class: "derived" })) : null,
      told.moments.some((m) => m[CHANGE].dropped) ? swatch("cut or lost from this log", box("dropped")) : null,
      told.moments.some((m) => Object.values(m[CHANGE].replicas || {}).some((c) => c[START])) ? swatch("removed, below log start", box("", { fill: "url(#removed)" })) : null,
      state && (state.losses || state.divergences) ? swatch("lost, missing or different in the end", box("lost")) : null,
    ];
    const marks = { election: "election", unclean: "unclean election", leaderless: "no leader", isr: "ISR change", crash: "crash",
      stop: "stop", start: "start", cut: "log cut", copy: "copy of the log", removed: "log start moves" };
    const used = new Set(told.moments.map((m) => m[MARK]));
    for (const [mark, words] of Object.entries(marks)) {
      if (used.has(mark)) items.push(swatch(words, shape("g", { class: "mark" }, markOf(mark, 11, 7))));
    }
    byId("legend").replaceChildren(...items.filter(Boolean));
  }

  function remember() {
    try { history.replaceState(null, "", `#p${now.index}e${now.step + 1}`); } catch { /* some viewers forbid it */ }
  }

  // --- The overview --------------------------------------------------------------------------------

  let rowsShown = ROWS_AT_ONCE;

  function showRows() {
    const sought = byId("search").value.trim().toLowerCase(), kinds = byId("filter").value.split(" ").filter(Boolean);
    const found = overview.rows.filter((row) => (!sought || row[1].toLowerCase().includes(sought)) && (!kinds.length || kinds.includes(row[2])));
    byId("rows").replaceChildren(...found.slice(0, rowsShown).map(overviewRow));
    byId("found").textContent = `${grouped(found.length)} of ${grouped(overview.total)} partitions`;
    byId("more-rows").classList.toggle("hidden", found.length <= rowsShown);
  }

  function overviewRow([index, label, damage, words, verdicts, leader, isr]) {
    const cell = (letter) => node("td", { class: `wide verdict ${letter}` }, VERDICTS[letter]);
    return node("tr", { "data-index": index, class: now.index === index ? "now" : null },
      node("th", { scope: "row" }, node("button", { type: "button", class: "plain", "data-index": index }, label)),
      node("td", { class: `damage-${damage}` }, words), ...[...verdicts].map(cell),
      node("td", { class: "wide number" }, leader === null ? "none" : String(leader)), node("td", { class: "wide" }, set(isr)));
  }

  // --- Hands: mouse, touch, keyboard -----------------------------------------------------------------

  const keyBack = () => show(now.told.keys.filter((key) => key < now.step).pop() ?? 0);
  const keyForward = () => show(now.told.keys.find((key) => key > now.step) ?? now.told.moments.length - 1);
  const MOVES = {
    first: () => show(0), back: () => show(now.step - 1), forward: () => show(now.step + 1),
    last: () => show(now.told.moments.length - 1), "key-back": keyBack, "key-forward": keyForward,
  };
  const KEYS = {
    ArrowLeft: MOVES.back, ArrowDown: MOVES.back, ArrowRight: MOVES.forward, ArrowUp: MOVES.forward,
    Home: MOVES.first, End: MOVES.last, PageUp: keyBack, PageDown: keyForward,
  };

  function nearest(clientX) {
    const box = byId("timeline").getBoundingClientRect(), told = now.told;
    let best = 0, least = Infinity;
    for (let step = 0; step < told.moments.length; step++) {
      const distance = Math.abs(told.timeX(step) - (clientX - box.left));
      if (distance < least) { least = distance; best = step; }
    }
    return best;
  }

  function listen() {
    for (const [id, move] of Object.entries(MOVES)) byId(id).addEventListener("click", move);
    const slider = byId("timeline");
    slider.addEventListener("keydown", (event) => {
      if (!KEYS[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      KEYS[event.key]();
    });
    slider.addEventListener("pointerdown", (event) => {
      slider.setPointerCapture(event.pointerId);
      show(nearest(event.clientX));
    });
    slider.addEventListener("pointermove", (event) => {
      if (slider.hasPointerCapture(event.pointerId)) show(nearest(event.clientX));
    });
    document.addEventListener("click", (event) => {
      const go = event.target.closest("button.go"), row = event.target.closest("#rows button"), key = event.target.closest("#keys button");
      if (row) open(+row.dataset.index, undefined, true);
      if (key) show(+key.dataset.step);
      if (go) goTo(+go.dataset.partition, go.dataset.event);
    });
    byId("routine").addEventListener("change", showKeys);
    byId("more-keys").addEventListener("click", () => { now.keysShown += KEYS_AT_ONCE * 4; showKeys(); });
    byId("search").addEventListener("input", () => { rowsShown = ROWS_AT_ONCE; showRows(); });
    byId("filter").addEventListener("change", () => { rowsShown = ROWS_AT_ONCE; showRows(); });
    byId("more-rows").addEventListener("click", () => { rowsShown += ROWS_AT_ONCE * 4; showRows(); });
    window.addEventListener("hashchange", fromAddress);
    const redraw = () => { layOut(); show(now.step); };
    new ResizeObserver(() => {
      if (now.told && byId("partition").clientWidth !== now.width) requestAnimationFrame(redraw);
    }).observe(byId("partition"));
    window.addEventListener("beforeprint", () => {
      for (const folded of document.querySelectorAll("details")) folded.open = true;
      redraw();
    });
  }

  function goTo(index, eventId) {
    const told = storyOf(index), step = told.events[eventId];
    open(index, step, true);
    if (step !== undefined) byId("timeline").focus({ preventScroll: true });
  }

  function fromAddress() {
    const match = /^#p(\d+)e(\d+)$/.exec(location.hash);
    if (!match || !rowOf.has(+match[1])) return false;
    open(+match[1], +match[2] - 1, true);
    return true;
  }

  showRows();
  listen();
  if (!fromAddress() && overview.rows.length) open(overview.rows[0][0]);
})();
