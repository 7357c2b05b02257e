// fill shows items as the rows of a table body. key identifies an item and cells returns its texts. A row stays in the
// document while its item is listed, so that focus and selection survive an update; only texts that differ are written.
// added is called with a new row and its item.
//
// Texts come from tenants: they are written with textContent, never as HTML.
export function fill(body, items, key, cells, added = () => {}) {
  const rows = new Map(Array.from(body.rows, (row) => [row.dataset.key, row]));
  let next = body.firstElementChild;
  for (const item of items) {
    const id = String(key(item));
    let row = rows.get(id);
    const isNew = row === undefined;
    if (isNew) {
      row = document.createElement('tr');
      row.dataset.key = id;
    }
    rows.delete(id);
    write(row, cells(item));
    if (isNew) added(row, item);
    if (row === next) next = next.nextElementSibling;
    else body.insertBefore(row, next);
  }
  for (const row of rows.values()) row.remove();
}

function write(row, texts) {
  texts.forEach((text, i) => {
    let cell = row.cells[i];
    if (cell === undefined) {
      cell = document.createElement(i === 0 ? 'th' : 'td');
      if (i === 0) cell.scope = 'row';
      row.append(cell);
    }
    setText(cell, text);
  });
}

// setText writes a text unless the element has it already.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// caption describes how many of the items are shown.
export function caption(element, noun, list) {
  const total = list.total.toLocaleString('en');
  const shown = list.items.length;
  setText(element, shown < list.total ? `${noun}: ${shown} of ${total}` : `${noun}: ${total}`);
}

// describe shows names and values in a description list.
export function describe(list, values) {
  for (const [name, value] of Object.entries(values)) {
    let entry = Array.from(list.children).find((child) => child.dataset.name === name);
    if (entry === undefined) {
      entry = document.createElement('div');
      entry.dataset.name = name;
      const [term, description] = [document.createElement('dt'), document.createElement('dd')];
      term.textContent = name;
      entry.append(term, description);
      list.append(entry);
    }
    setText(entry.lastElementChild, value);
  }
  for (const entry of Array.from(list.children)) {
    if (!(entry.dataset.name in values)) entry.remove();
  }
}
