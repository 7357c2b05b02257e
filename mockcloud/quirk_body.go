package mockcloud

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"
)

// object is a JSON object whose fields have an order, because a later field can
// replace an earlier one in a decoder that ignores case.
type object []field

type field struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		out.WriteString(strconv.Quote(f.name) + ":")
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// set replaces a field, or adds it.
func (o *object) set(name string, value any) {
	if i := o.index(name); i >= 0 {
		(*o)[i].value = value
		return
	}
	*o = append(*o, field{name, value})
}

// replace replaces a field if the object has it.
func (o object) replace(name string, change func(value any) any) {
	if i := o.index(name); i >= 0 {
		o[i].value = change(o[i].value)
	}
}

func (o object) index(name string) int {
	return slices.IndexFunc(o, func(f field) bool { return f.name == name })
}

// asObject returns the fields of a value that JSON has as an object, each as
// json.RawMessage.
func asObject(value any) object {
	data := encoded("", "object", value).Value
	decoder := json.NewDecoder(bytes.NewReader(data))
	var o object
	if _, err := decoder.Token(); err != nil {
		return nil
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return o
		}
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return o
		}
		text, _ := name.(string)
		o = append(o, field{text, raw})
	}
	return o
}

// shapes reports whether a quirk changes the content of JSON bodies.
func (q *Quirks) shapes() bool {
	return q.NormalizeNames || q.renames() || q.CutLabels > 0 || q.DropLabels || q.NumericIDs || q.ExtraFields || q.WrongTypes || q.WrongLabels || q.LowerCaseStates || q.LongHost
}

// normalized is the form of a name under Quirks.NormalizeNames.
func normalized(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// shapeServer returns the body of a server with the quirks. Core is the profile.
func (q *Quirks) shapeServer(body any, r *record, core bool) any {
	if !q.shapes() {
		return body
	}
	o := asObject(body)
	q.shapeCommon(&o)
	if q.renames() {
		o.replace("name", func(value any) any { return named(value, q.givenName) })
	}
	if q.CutLabels > 0 || q.DropLabels {
		o.replace("labels", func(any) any { return q.keptLabels(r.Labels) })
	}
	if q.WrongTypes {
		o.set("createdAt", r.CreatedAt.Unix())
		o.set("memory", strconv.Itoa(r.Memory)+"GB")
		o.set("host", object{})
		o.replace("cpuUtilization", percentText)
	}
	if q.LongHost && (core || o.index("host") >= 0) {
		host := r.Host + "."
		o.set("host", host+strings.Repeat("h", max(0, longHost-len(host))))
	}
	if q.WrongLabels || q.WrongTypes && !r.Labelled {
		o.set("labels", append([]string{"web"}, slices.Sorted(maps.Keys(r.Labels))...))
	}
	if q.ExtraFields {
		o = withExtra(o, "ID", "NAME", "Labels", "State", "CPU", "Memory", "NetworkId", "Host", "CpuUtilization", "CREATEDAT")
	}
	return o
}

// renames reports whether a quirk gives servers, networks and snapshots other names than were asked for, beside NormalizeNames.
func (q *Quirks) renames() bool { return q.DomainNames || q.CutNames > 0 || q.DecomposedNames }

// givenName returns the name that answers have for a server, a network or a snapshot.
func (q *Quirks) givenName(name string) string {
	if q.DomainNames {
		name += ".cloud.example.com"
	}
	if q.DecomposedNames {
		name = norm.NFD.String(name)
	}
	return cutText(name, q.CutNames)
}

// keptLabels returns the labels that answers have for a server.
func (q *Quirks) keptLabels(labels map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range labels {
		if !q.DropLabels {
			kept[key] = cutText(value, q.CutLabels)
		}
	}
	return kept
}

// cutText returns at most so many characters of a text; all for 0.
func cutText(text string, most int) string {
	if runes := []rune(text); most > 0 && len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// named returns a name, which is JSON unless another quirk has changed it, in another form.
func named(value any, form func(string) string) any {
	if name, shaped := value.(string); shaped {
		return form(name)
	}
	var name string
	if json.Unmarshal(value.(json.RawMessage), &name) != nil {
		return value
	}
	return form(name)
}

// longHost is the length of a host under Quirks.LongHost: one more than a DNS name
// may have.
const longHost = 254

// shapeNetwork returns the body of a network with the quirks.
func (q *Quirks) shapeNetwork(n *Network) any {
	if !q.shapes() {
		return n
	}
	o := asObject(n)
	q.shapeCommon(&o)
	o.replace("name", func(value any) any { return named(value, q.givenName) })
	if q.WrongTypes {
		o.set("createdAt", n.CreatedAt.Unix())
	}
	if q.ExtraFields {
		o = withExtra(o, "ID", "NAME", "Cidr", "GATEWAY", "UpdatedAT")
	}
	return o
}

// shapeSnapshot returns the body of a snapshot with the quirks of names.
func (q *Quirks) shapeSnapshot(s Snapshot) Snapshot {
	if q.NormalizeNames {
		s.Name = normalized(s.Name)
	}
	s.Name = q.givenName(s.Name)
	return s
}

// shapeStatus returns the body of GET /servers/{id}/status with the quirks.
func (q *Quirks) shapeStatus(body map[string]any) any {
	if !q.shapes() {
		return body
	}
	o := asObject(body)
	q.shapeCommon(&o)
	if q.WrongTypes {
		o.replace("cpuUtilization", percentText)
	}
	if q.ExtraFields {
		o = withExtra(o, "CpuUtilization", "CPUUTILIZATION", "State")
	}
	return o
}

// shapeList returns the body of a list or of another object with the quirks.
func (q *Quirks) shapeList(body any, similar ...string) any {
	if !q.ExtraFields {
		return body
	}
	return withExtra(asObject(body), similar...)
}

func (q *Quirks) shapeCommon(o *object) {
	if q.NormalizeNames {
		o.replace("name", func(value any) any { return named(value, normalized) })
	}
	if q.LowerCaseStates {
		o.replace("state", func(value any) any { return json.RawMessage(bytes.ToLower(value.(json.RawMessage))) })
	}
	if q.NumericIDs {
		o.replace("id", unquoted)
		o.replace("networkId", unquoted)
	}
}

// unquoted returns the number that a string consists of; any other value is
// returned as it is.
func unquoted(value any) any {
	text := strings.Trim(string(value.(json.RawMessage)), `"`)
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return value
	}
	return json.RawMessage(text)
}

func percentText(value any) any { return string(value.(json.RawMessage)) + "%" }

// withExtra adds unknown fields, and fields whose names differ from known ones
// only in case. These are last, where a decoder that ignores case takes them.
func withExtra(o object, similar ...string) object {
	o = append(o,
		field{"tenant", map[string]any{"id": "t-1", "tags": []any{"a", 1, nil}}},
		field{"_links", []any{map[string]any{"rel": "self", "href": "/"}}},
		field{"revision", time.Hour.Milliseconds()},
	)
	nonsense := []any{map[string]any{"no": "sense"}, []any{0, 1}, -7, "no sense", true, nil}
	for i, name := range similar {
		o = append(o, field{name, nonsense[i%len(nonsense)]})
	}
	return o
}

// firstNumericID is above 2^53, so that a client must not read IDs as floating
// point numbers.
const firstNumericID = 1<<53 + 1

// newID returns the ID of a new server, network or snapshot that is not used; see
// NumericIDs and ReusesIDs. The caller holds mu, and appends to the ledger before it
// calls newID again.
func (c *core) newID(used func(id string) bool) string {
	q := c.quirks.Load()
	first, next := int64(firstNumericID), int64(len(c.st.ledger))
	switch {
	case !q.NumericIDs && !q.ReusesIDs:
		return uuid.NewString()
	case !q.NumericIDs:
		first = 1
	}
	if q.ReusesIDs {
		next = 0
	}
	for ; ; next++ {
		if id := strconv.FormatInt(first+next, 10); !used(id) {
			return id
		}
	}
}

// hasServer, hasNetwork and hasSnapshot report whether an ID is used. The caller holds core.mu.
func (s *state) hasServer(id string) bool { return s.servers[id] != nil }

func (s *state) hasNetwork(id string) bool { return s.networks[id] != nil }

func (s *state) hasSnapshot(id string) bool {
	for _, r := range s.servers {
		if slices.ContainsFunc(r.Snapshots, func(one Snapshot) bool { return one.ID == id }) {
			return true
		}
	}
	return false
}
