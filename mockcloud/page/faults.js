import { fill, setText } from '/page/table.js';

// presets are the faults that have a switch. Each is added and removed with the admin API, under its own ID.
const presets = [
  { id: 'outage', name: 'Outage', about: 'Every call answers 503',
    fault: { match: { path: '/**' }, status: 503 } },
  { id: 'slow', name: 'Slow', about: 'Every call takes two seconds more',
    fault: { match: { path: '/**' }, delay: '2s' } },
  { id: 'rate-limit', name: 'Rate limit', about: 'About one call in five answers 429',
    fault: { match: { path: '/**', probability: 0.2 }, status: 429, retryAfter: '3' } },
  { id: 'lost-answer', name: 'Lost answers', about: 'Servers are created, but the connection is reset',
    fault: { match: { method: 'POST', path: '/servers' }, reset: true, answer: 'after' } },
  { id: 'held-creates', name: 'Held creates', about: 'Creates wait until they are released',
    fault: { match: { method: 'POST', path: '/servers' }, hold: true } },
  { id: 'empty-listing', name: 'Empty listings', about: 'Listings contain no server',
    fault: { match: { method: 'GET', path: '/servers' }, list: { empty: true } } },
];

// faults builds the switches and returns a function that shows the active faults. announce shows a message and has it read
// out; heading gets the focus when the focused button disappears.
export function faults(switches, body, heading, announce) {
  const inputs = presets.map((preset) => addSwitch(switches, preset, announce));

  return function show(list) {
    const active = new Set(list.items.map((item) => item.id));
    for (const input of inputs) input.checked = active.has(input.value);
    const focused = body.contains(document.activeElement);
    fill(body, list.items, (item) => item.id,
      (item) => [item.id, item.description, String(item.fired), String(item.held)],
      (row, item) => addActions(row, item.id, announce));
    if (focused && !body.contains(document.activeElement)) heading.focus();
  };
}

function addSwitch(switches, preset, announce) {
  const entry = document.createElement('div');
  const [label, input, name, about] = ['label', 'input', 'span', 'p'].map((tag) => document.createElement(tag));
  input.type = 'checkbox';
  input.setAttribute('role', 'switch');
  input.value = preset.id;
  about.id = `about-${preset.id}`;
  input.setAttribute('aria-describedby', about.id);
  setText(name, preset.name);
  setText(about, preset.about);
  label.append(input, name);
  entry.append(label, about);
  switches.append(entry);
  input.addEventListener('change', async () => {
    const on = input.checked;
    const done = on
      ? await call('POST', '/faults', announce, { id: preset.id, ...preset.fault })
      : await call('DELETE', faultPath(preset.id), announce);
    if (done) announce(`The fault ${preset.name} is ${on ? 'on' : 'off'}`);
    else input.checked = !on;
  });
  return input;
}

function addActions(row, id, announce) {
  const cell = document.createElement('td');
  cell.append(
    button('Remove', id, async () => {
      if (await call('DELETE', faultPath(id), announce)) announce(`The fault ${id} is removed`);
    }),
    button('Release', id, async () => {
      if (await call('POST', `${faultPath(id)}/release`, announce)) announce(`The calls that ${id} held are released`);
    }),
  );
  row.append(cell);
}

function button(text, id, act) {
  const element = document.createElement('button');
  element.type = 'button';
  setText(element, text);
  element.setAttribute('aria-label', `${text} ${id}`);
  element.addEventListener('click', act);
  return element;
}

function faultPath(id) {
  return `/faults/${encodeURIComponent(id)}`;
}

// call calls the admin API and reports whether it succeeded. It announces an error.
async function call(method, path, announce, body) {
  try {
    const answer = await fetch(path, { method, body: body && JSON.stringify(body) });
    if (answer.ok) return true;
    const problem = await answer.json();
    announce(`The fault is not changed: ${problem.detail}`);
  } catch {
    announce('The fault is not changed: the mock cloud does not answer');
  }
  return false;
}
