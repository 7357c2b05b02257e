package mockcloud

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// quirkKind is how one quirk is read and written as text.
type quirkKind struct {
	name string
	// set reads the value of the flag, which is empty if only the name is given.
	set func(q *Quirks, value string) error
	// value returns the value as the flag has it, and whether the quirk is on.
	value func(q Quirks) (string, bool)
	// choices are the valid values; empty if others are valid, too.
	choices []string
	// documented is set if all answers still conform to the OpenAPI document.
	documented bool
}

var quirkKinds = []quirkKind{
	{
		name: "seed", documented: true,
		set: func(q *Quirks, value string) (err error) {
			q.Seed, err = strconv.ParseUint(value, 10, 64)
			return err
		},
		value: func(q Quirks) (string, bool) { return strconv.FormatUint(q.Seed, 10), q.Seed != 0 },
	},
	ofDuration("readLag", true, func(q *Quirks) *Duration { return &q.ReadLag }),
	ofDuration("replicaLag", true, func(q *Quirks) *Duration { return &q.ReplicaLag }),
	ofSwitch("normalizeNames", true, func(q *Quirks) *bool { return &q.NormalizeNames }),
	ofSwitch("domainNames", true, func(q *Quirks) *bool { return &q.DomainNames }),
	ofCount("cutNames", true, func(q *Quirks) *int { return &q.CutNames }),
	ofSwitch("decomposedNames", true, func(q *Quirks) *bool { return &q.DecomposedNames }),
	ofCount("cutLabels", true, func(q *Quirks) *int { return &q.CutLabels }),
	ofSwitch("dropLabels", true, func(q *Quirks) *bool { return &q.DropLabels }),
	ofSwitch("keysInProgress", true, func(q *Quirks) *bool { return &q.KeysInProgress }),
	ofSwitch("numericIDs", false, func(q *Quirks) *bool { return &q.NumericIDs }),
	ofSwitch("reusesIDs", false, func(q *Quirks) *bool { return &q.ReusesIDs }),
	ofSwitch("extraFields", false, func(q *Quirks) *bool { return &q.ExtraFields }),
	ofSwitch("wrongTypes", false, func(q *Quirks) *bool { return &q.WrongTypes }),
	ofSwitch("wrongLabels", false, func(q *Quirks) *bool { return &q.WrongLabels }),
	ofSwitch("lowerCaseStates", false, func(q *Quirks) *bool { return &q.LowerCaseStates }),
	ofChoice("contentType", false, func(q *Quirks) *string { return &q.ContentType }, "text/json", "application/octet-stream", "none"),
	ofChoice("plain404", false, func(q *Quirks) *string { return &q.Plain404 }, "empty", "json", "html", "text"),
	ofSwitch("noCodes", false, func(q *Quirks) *bool { return &q.NoCodes }),
	ofChoice("capabilities", false, func(q *Quirks) *string { return &q.Capabilities },
		"400", "401", "403", "405", "500", "501", "html", "empty"),
	ofCount("listCap", true, func(q *Quirks) *int { return &q.ListCap }),
	ofSwitch("longHost", false, func(q *Quirks) *bool { return &q.LongHost }),
	ofSwitch("replayResets", true, func(q *Quirks) *bool { return &q.ReplayResets }),
	ofChoice("ignorePatch", true, func(q *Quirks) *string { return &q.IgnorePatch }, PatchUnchanged, PatchEcho),
	ofText("stuckBuilding", true, func(q *Quirks) *string { return &q.StuckBuilding }),
	ofDuration("retryAfterDate", true, func(q *Quirks) *Duration { return &q.RetryAfterDate }),
	ofCount("hugeListing", false, func(q *Quirks) *int { return &q.HugeListing }),
	ofCount("gzipBomb", false, func(q *Quirks) *int64 { return &q.GzipBomb }),
	ofSwitch("existingOnCreate", false, func(q *Quirks) *bool { return &q.ExistingOnCreate }),
}

// Names returns the names of the quirks that are on, without the seed.
func (q Quirks) Names() []string {
	var names []string
	for _, k := range quirkKinds {
		if _, on := k.value(q); on && k.name != "seed" {
			names = append(names, k.name)
		}
	}
	return names
}

// quirkNamed returns an error that lists all quirks if there is none of this name.
func quirkNamed(name string) (quirkKind, error) {
	names := make([]string, len(quirkKinds))
	for i, k := range quirkKinds {
		if k.name == name {
			return k, nil
		}
		names[i] = k.name
	}
	return quirkKind{}, fmt.Errorf("unknown quirk %q: the quirks are %s", name, strings.Join(names, ", "))
}

// documented reports whether all answers conform to the OpenAPI document.
func (q *Quirks) documented() bool {
	for _, k := range quirkKinds {
		if _, on := k.value(*q); on && !k.documented {
			return false
		}
	}
	return true
}

func ofSwitch(name string, documented bool, of func(*Quirks) *bool) quirkKind {
	return quirkKind{
		name: name, documented: documented,
		set: func(q *Quirks, value string) (err error) {
			*of(q) = true
			if value != "" {
				*of(q), err = strconv.ParseBool(value)
			}
			return err
		},
		value: func(q Quirks) (string, bool) { return "", *of(&q) },
	}
}

func ofDuration(name string, documented bool, of func(*Quirks) *Duration) quirkKind {
	return quirkKind{
		name: name, documented: documented,
		set: func(q *Quirks, value string) error {
			parsed, err := time.ParseDuration(value)
			*of(q) = Duration(parsed)
			return err
		},
		value: func(q Quirks) (string, bool) { return time.Duration(*of(&q)).String(), *of(&q) != 0 },
	}
}

func ofCount[T int | int64](name string, documented bool, of func(*Quirks) *T) quirkKind {
	return quirkKind{
		name: name, documented: documented,
		set: func(q *Quirks, value string) error {
			parsed, err := strconv.ParseInt(value, 10, 64)
			*of(q) = T(parsed)
			return err
		},
		value: func(q Quirks) (string, bool) { return strconv.FormatInt(int64(*of(&q)), 10), *of(&q) != 0 },
	}
}

// ofChoice returns a quirk with the value of one of the choices, the first one if
// no value is given.
func ofChoice(name string, documented bool, of func(*Quirks) *string, choices ...string) quirkKind {
	k := ofText(name, documented, of)
	k.choices = choices
	k.set = func(q *Quirks, value string) error {
		*of(q) = value
		if value == "" {
			*of(q) = choices[0]
		}
		return nil
	}
	return k
}

func ofText(name string, documented bool, of func(*Quirks) *string) quirkKind {
	return quirkKind{
		name: name, documented: documented,
		set: func(q *Quirks, value string) error {
			if value == "" {
				return fmt.Errorf("the value is missing")
			}
			*of(q) = value
			return nil
		},
		value: func(q Quirks) (string, bool) { return *of(&q), *of(&q) != "" },
	}
}
