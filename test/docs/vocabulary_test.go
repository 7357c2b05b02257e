package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checked are the files and folders whose words TestVocabulary checks: pages,
// Go code, scripts and manifests. Extend it as code gets its new names; at the
// end it is ".".
var checked = []string{"."}

// unchecked are files in checked folders that contain the words on purpose, and
// what is generated.
var unchecked = []string{"test/docs/vocabulary_test.go", "bundle", "catalog", "config/crd/bases"}

// word is one that a reader of the Kubernetes documentation does not expect.
type word struct {
	// write is what to write instead.
	write string
	// pattern finds the word in a line, and allowed the uses of the pattern that
	// are ordinary English or names of the API.
	pattern, allowed *regexp.Regexp
	// prose restricts the word to pages, and code to all other files.
	prose, code bool
	// hits and misses are examples.
	hits, misses []string
}

var vocabulary = map[string]word{
	"tells whether": {
		write: "reports whether", pattern: regexp.MustCompile(`(?i)\btells? whether\b`),
		hits: []string{"Has tells whether the cloud can do it."}, misses: []string{"Has reports whether the cloud can do it."},
	},
	"tell, told": {
		write: "report, record, say", pattern: regexp.MustCompile(`(?i)\b(tells?|told|telling)\b`), prose: true,
		hits: []string{"events tell of it", "it is told once"}, misses: []string{"the intellect"},
	},
	"tell (function)": {
		write: "record, report", pattern: regexp.MustCompile(`\btell\(|\btold\b|\btells of\b`), code: true,
		hits: []string{"func (r *Reconciler) tell(obj T)", "changes that are told as events"}, misses: []string{"nobody can tell them apart"},
	},
	"story": {
		write: "event conditions", pattern: regexp.MustCompile(`\b[Ss]tor(y|ies)\b|Story\b`),
		hits: []string{"func (Kind) Story() []string", "a VM's story"}, misses: []string{"the history"},
	},
	"verdict": {
		write: "outcome", pattern: regexp.MustCompile(`(?i)verdict`), allowed: regexp.MustCompile("\\{\\.verdict\\}|`verdict`|`?json:\"verdict"),
		hits: []string{"verdict error", "verdicts.go"}, misses: []string{`{.nodeName}{"\t"}{.verdict}{"\n"}`},
	},
	"pass (a reconcile)": {
		write:   "reconcile",
		pattern: regexp.MustCompile(`(?i)\b(a|an|the|each|every|one|this|next|last|later|earlier|first|whole|single|two|no|between|of|per|another|same)\s+pass(es|'s)?\b|\bmid-pass\b`),
		hits:    []string{"a pass over a VM", "what it remembers between passes", "of one pass", "each pass would write"},
		misses:  []string{"the suite that every client must pass", "time passes", "tests pass", "pass the conformance suite", "a password", "clients that pass"},
	},
	"seen (variable)": {
		write: "obs, observed", pattern: regexp.MustCompile(`\bseen\.[a-z]|\bseen \*|, seen\)|\bseen S\b`), code: true,
		hits: []string{"switch { case seen.denied != nil:", "func plan(vm *v1alpha1.VM, seen *scope)"}, misses: []string{"seen := map[string]bool{}", "servers seen by the client"},
	},
	"trio": {
		write: "summary conditions", pattern: regexp.MustCompile(`(?i)\btrio\b`),
		hits: []string{"besides the trio"}, misses: []string{"a triode"},
	},
	"settle": {
		write: "finish, patchStatus; settle time for the field", pattern: regexp.MustCompile(`\b[Ss]ettle[sd]?\b`),
		allowed: regexp.MustCompile(`(?i)settle[- ]times?\b`),
		hits:    []string{"r.settle(ctx, obj)", "Only settle writes status"}, misses: []string{"the settle time", "settleTime: 2m", "a settlement"},
	},
	"wake, woken": {
		write: "enqueue", pattern: regexp.MustCompile(`\b([Ww]ak(e|es|ing)|[Ww]oken|woke)\b|\bwake[A-Z]|Wake|Woken`),
		hits: []string{"is woken by it", "wake.go", "wakeAll()"}, misses: []string{"awareness"},
	},
	"news": {
		write: "event", pattern: regexp.MustCompile(`\b[Nn]ews\b|News\b`),
		hits: []string{"news of its server", "takeNews()"}, misses: []string{"newServer()", "newsletter"},
	},
	"bell": {
		write: "notify", pattern: regexp.MustCompile(`\b[Bb]ells?\b|Bell\b|\bbell[A-Z]`),
		hits: []string{"the bell rings"}, misses: []string{"labelled"},
	},
	"haste": {
		write: "requestPoll", pattern: regexp.MustCompile(`\b[Hh]aste|Hast(e|en)\b`),
		hits: []string{"view.Hasten()", "in haste"}, misses: []string{"chasten"},
	},
	"worthAPass, Touched": {
		write: "the name of a predicate", pattern: regexp.MustCompile(`worthAPass|\bTouched\b`),
		hits: []string{"predicate := worthAPass"}, misses: []string{"a server is not touched"},
	},
	"shelf, flight": {
		write: "on-demand list, call in flight", pattern: regexp.MustCompile(`(?i)\bshel(f|ves)\b|\bflights?\b`),
		allowed: regexp.MustCompile(`(?i)\bin[- ]flight\b`),
		hits:    []string{"shelf.go", "type flight struct"}, misses: []string{"calls in flight", "maxInFlight", "singleflight"},
	},
	"turns": {
		write:   "limiter, limits",
		pattern: regexp.MustCompile(`(?i)\b(a|its|their|own|for|takes?|promised) turns?\b|\bturns (of|are|were)\b|\bturn\.go\b|\btype turns?\b`),
		hits:    []string{"takes a turn of the limiter", "waits for its turn", "turn.go"}, misses: []string{"turns the outcome into a result", "in turn", "turn it off", "turns off"},
	},
	"door": {
		write: "webhook, admission", pattern: regexp.MustCompile(`\b[Dd]oors?\b|\bdoor_|Doors?\b|Door[A-Z]`),
		hits: []string{"at the API server's door", "door_test.go"}, misses: []string{"indoors"},
	},
	"edition": {
		write: "key", pattern: regexp.MustCompile(`(?i)\beditions?\b|editionOf`),
		hits: []string{"type edition struct"}, misses: []string{"additions"},
	},
	"way (a client)": {
		write: "client", pattern: regexp.MustCompile(`\bway(, err)? :?= |\bway\.[A-Z]|\breturn way\b|\bthe way to (a|each|the) [Cc]loud\b`),
		hits: []string{"way, err := s.refresh(ctx, c, l)", "way.Capabilities(ctx)", "keeps the way to each Cloud open"}, misses: []string{"both ways", "in the same way"},
	},
	"link (an entry)": {
		write: "entry", pattern: regexp.MustCompile(`\*link\b|\btype link\b|&link\{`), code: true,
		hits: []string{"byName map[string]*link", "type link struct {"}, misses: []string{"link := regexp.MustCompile(x)", "checks each link"},
	},
	"lest": {
		write: "so that ... not", pattern: regexp.MustCompile(`(?i)\blest\b`),
		hits: []string{"lest the account is locked"}, misses: []string{"smallest"},
	},
	"whose one is": {
		write: "which object owns it", pattern: regexp.MustCompile(`(?i)\bwhose one is\b`),
		hits: []string{"whose one is"}, misses: []string{"whose name is taken"},
	},
	"of which nothing came": {
		write: "that had no effect", pattern: regexp.MustCompile(`(?i)\bnothing came\b`),
		hits: []string{"a create of which nothing came", "that nothing came of it"}, misses: []string{"nothing became Ready"},
	},
	"creates.Memory": {
		write: "pending.Tracker", pattern: regexp.MustCompile(`\bcreates\.Memory\b|\bDoomedSince\b|\.Answered\(`),
		hits: []string{"memory creates.Memory", "m.DoomedSince(uid)"}, misses: []string{"creates a server"},
	},
}

// found reports whether a line of a file uses the word.
func (w word) found(file, line string) bool {
	page := strings.HasSuffix(file, ".md")
	if w.prose && !page || w.code && page {
		return false
	}
	if w.allowed != nil {
		line = w.allowed.ReplaceAllString(line, "")
	}
	return w.pattern.MatchString(line)
}

func TestVocabulary(t *testing.T) {
	folders := map[string][]string{}
	for _, place := range checked {
		for _, file := range files(t, place) {
			if !isText(file) || strings.Contains(file, "zz_generated") ||
				slices.ContainsFunc(unchecked, func(skip string) bool { return file == skip || strings.HasPrefix(file, skip+"/") }) {
				continue
			}
			folders[path.Dir(file)] = append(folders[path.Dir(file)], file)
		}
	}
	for folder, files := range folders {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			for _, file := range files {
				checkWords(t, file)
			}
		})
	}
}

func checkWords(t *testing.T, file string) {
	t.Helper()
	for name, w := range vocabulary {
		if w.found(file, path.Base(file)) {
			t.Errorf("%s: instead of %q write %q in the name of the file", file, name, w.write)
		}
	}
	n := 0
	for line := range strings.Lines(read(t, file)) {
		n++
		for name, w := range vocabulary {
			if w.found(file, line) {
				t.Errorf("%s:%d: instead of %q write %q: %s", file, n, name, w.write, strings.TrimSpace(line))
			}
		}
	}
}

func TestVocabularyFindsTheWordsAndNoOthers(t *testing.T) {
	for name, w := range vocabulary {
		t.Run(name, func(t *testing.T) {
			file := "page.md"
			if w.code {
				file = "code.go"
			}
			if len(w.hits) == 0 || len(w.misses) == 0 {
				t.Fatal("no examples")
			}
			for _, line := range w.hits {
				if !w.found(file, line) {
					t.Errorf("%q is not found", line)
				}
			}
			for _, line := range w.misses {
				if w.found(file, line) {
					t.Errorf("%q is found, and is ordinary", line)
				}
			}
		})
	}
}
