import { faults } from '/page/faults.js';
import { graph } from '/page/graph.js';
import { caption, describe, fill, setText } from '/page/table.js';

const byId = (id) => document.getElementById(id);
const announce = (text) => setText(byId('announcement'), text);
const time = (text) => (text ? new Date(text).toLocaleTimeString('en-GB') : '');
const number = (value) => value.toLocaleString('en');

const append = graph(byId('graph'), byId('graph-caption'));

// filtered is set when the filter has changed: its result is read out once, and later changes are not.
let filtered = false;

// show has a function for each part of the overview.
const show = {
  summary(now) {
    const values = { Profile: now.profile, Servers: number(Object.values(now.servers).reduce((a, b) => a + b, 0)) };
    for (const state of Object.keys(now.servers).sort()) values[state] = number(now.servers[state]);
    describe(byId('summary'), values);
    append(Date.parse(now.at), now.cpuUtilization);
  },
  servers(list) {
    const matching = byId('filter').value === '' ? 'Servers' : 'Servers that match';
    caption(byId('servers-caption'), matching, list);
    if (filtered) setText(byId('found'), byId('filter').value === '' ? '' : `${number(list.total)} servers match`);
    filtered = false;
    fill(byId('servers-body'), list.items, (s) => s.id, (s) => [
      s.name, s.state, `${s.cpuUtilization} %`, `${s.cpu} CPU, ${s.memory} GiB`, s.host ?? '', time(s.createdAt), s.id,
    ]);
  },
  networks(list) {
    caption(byId('networks-caption'), 'Networks', list);
    fill(byId('networks-body'), list.items, (n) => n.id, (n) => [n.name, n.cidr, n.gateway]);
  },
  hosts(list) {
    caption(byId('hosts-caption'), 'Hosts', list);
    fill(byId('hosts-body'), list.items, (h) => h.name, (h) => [
      h.name, h.gpu ? `yes, ${h.availableHours} h` : 'no', `${number(h.cpuUsageMHz)} MHz`, `${number(h.memoryUsageMB)} MB`,
    ]);
  },
  faults: faults(byId('switches'), byId('faults'), byId('faults-title'), announce),
  ledger(list) {
    caption(byId('ledger-caption'), 'Effects', list);
    fill(byId('ledger-body'), list.items, (e) => e.seq, (e) => [
      String(e.seq), time(e.time), e.fields ? `${e.op} ${e.fields.join(', ')}` : e.op, e.name, e.by, e.requestId ?? '',
    ]);
  },
};

let stream;

// connect opens the stream with the filter of the form. The browser reconnects by itself.
function connect() {
  stream?.close();
  stream = new EventSource(`/admin/overview?filter=${encodeURIComponent(byId('filter').value)}`);
  stream.addEventListener('open', () => setText(byId('connection'), 'Live'));
  stream.addEventListener('error', () => setText(byId('connection'), 'Disconnected: the mock cloud does not answer'));
  for (const [part, update] of Object.entries(show)) {
    stream.addEventListener(part, (event) => update(JSON.parse(event.data)));
  }
}

byId('pause').addEventListener('click', (event) => {
  const paused = event.currentTarget.getAttribute('aria-pressed') !== 'true';
  event.currentTarget.setAttribute('aria-pressed', String(paused));
  if (!paused) {
    connect();
    return;
  }
  stream.close();
  setText(byId('connection'), 'Paused');
});

let typing;
byId('filter').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    byId('pause').setAttribute('aria-pressed', 'false');
    filtered = true;
    connect();
  }, 250);
});
byId('search').addEventListener('submit', (event) => event.preventDefault());

connect();
