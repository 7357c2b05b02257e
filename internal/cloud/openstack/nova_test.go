package openstack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// offers makes the stub answer as nova and glance do with these flavors and images, each a JSON array: creates and resizes
// are checked as the API of nova checks them, before a host is chosen.
func (s *stub) offers(flavors, images string) {
	s.on("GET compute/flavors/detail", `{"flavors": `+flavors+`}`)
	var all []map[string]any
	mustParse(images, &all)
	s.handle("GET image/images", func(w http.ResponseWriter, r *http.Request) {
		listed, unknown := glanceLists(all, r.URL.Query())
		if unknown != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"message": "Unable to filter by unknown operator '%s'.<br /><br />", "code": "400 Bad Request", "title": "Bad Request"}`, unknown)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"images": listed})
	})
	for _, i := range all {
		text, _ := json.Marshal(i)
		s.on("GET image/images/"+fmt.Sprint(i["id"]), string(text))
	}
	s.handle("POST compute/servers", func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			Server struct{ FlavorRef, ImageRef string }
		}
		_ = json.NewDecoder(r.Body).Decode(&sent)
		if refused(w, novaChecks(flavors, images, sent.Server.FlavorRef, sent.Server.ImageRef, 0)) {
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"server": {"id": %q}}`, someID)
	})
}

// glanceLists returns the images that match a query, or the operator in it that glance does not know: since Mitaka, what
// precedes a colon is one.
func glanceLists(all []map[string]any, query url.Values) (listed []map[string]any, unknown string) {
	name := query.Get("name")
	if operator, rest, some := strings.Cut(name, ":"); some && operator != "eq" {
		return nil, operator
	} else if some {
		name = rest
	}
	for _, i := range all {
		tags, _ := i["tags"].([]any)
		tagged := !slices.ContainsFunc(query["tag"], func(tag string) bool { return !slices.Contains(tags, any(tag)) })
		if tagged && (name == "" || i["name"] == name) && (!query.Has("owner") || i["owner"] == query.Get("owner")) &&
			(!query.Has("visibility") || i["visibility"] == query.Get("visibility")) {
			listed = append(listed, i)
		}
	}
	return listed, ""
}

// resizes makes the stub resize a server of an image and of a disk, as offers does. Without an image, the server boots
// from a volume, which may have any flavor.
func (s *stub) resizes(flavors, images, imageID string, disk int) {
	s.offers(flavors, images)
	s.handle("POST compute/servers/"+someID+"/action", func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			Resize struct{ FlavorRef string }
		}
		_ = json.NewDecoder(r.Body).Decode(&sent)
		if imageID == "" || !refused(w, novaChecks(flavors, images, sent.Resize.FlavorRef, imageID, disk)) {
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

// novaRefusal is why nova refuses a create or a resize.
type novaRefusal struct {
	status        int
	code, message string
}

// novaChecks returns why nova refuses a flavor for an image; nil if it does not. With a resize, disk is that of the flavor
// with which the server was created, which counts as the least disk of its image from then on.
func novaChecks(flavors, images, flavorID, imageID string, disk int) *novaRefusal {
	const gib = 1 << 30
	type size struct {
		ID        string
		RAM, Disk int
	}
	var offered []size
	var active []struct {
		ID      string
		Size    int
		MinDisk int `json:"min_disk"`
		MinRAM  int `json:"min_ram"`
	}
	mustParse(flavors, &offered)
	mustParse(images, &active)
	f, i := slices.IndexFunc(offered, func(f size) bool { return f.ID == flavorID }), 0
	for i < len(active) && active[i].ID != imageID {
		i++
	}
	if f < 0 || i == len(active) && disk == 0 {
		return &novaRefusal{http.StatusBadRequest, "badRequest", "Flavor or image could not be found."}
	}
	if i == len(active) {
		active = slices.Grow(active, 1)[:i+1] // a resize: nova keeps what it needs of an image
	}
	least := max(active[i].MinDisk, disk)
	switch {
	case offered[f].RAM < active[i].MinRAM:
		return &novaRefusal{http.StatusBadRequest, "badRequest", "Flavor's memory is too small for requested image."}
	case offered[f].Disk == 0 && disk > 0:
		return &novaRefusal{http.StatusBadRequest, "badRequest", "Server disk was unable to be resized because: Resize to zero disk flavor is not allowed."}
	case offered[f].Disk == 0:
		return &novaRefusal{http.StatusForbidden, "forbidden", "Only volume-backed servers are allowed for flavors with zero disk."}
	case active[i].Size > offered[f].Disk*gib:
		return &novaRefusal{http.StatusBadRequest, "badRequest", "Flavor's disk is too small for requested image."}
	case least > offered[f].Disk:
		return &novaRefusal{http.StatusBadRequest, "badRequest", "Flavor's disk is smaller than the minimum size specified in image metadata."}
	}
	return nil
}

// refused answers with a refusal, if there is one.
func refused(w http.ResponseWriter, r *novaRefusal) bool {
	if r == nil {
		return false
	}
	w.WriteHeader(r.status)
	fmt.Fprintf(w, `{%q: {"message": %q, "code": %d}}`, r.code, r.message, r.status)
	return true
}

func mustParse(text string, into any) {
	if err := json.NewDecoder(strings.NewReader(text)).Decode(into); err != nil {
		panic(err)
	}
}

// novaConsole is what nova knows of the console of a server.
type novaConsole struct {
	// printed is what the guest wrote, in bytes.
	printed string
	// unplaced: the server has no host, as while a host is looked for, or once it is shelved.
	unplaced bool
	// undefined: its host does not have it yet. closed: it has no console there. unable: the
	// hypervisor cannot read consoles.
	undefined, closed, unable bool
}

// console makes the stub answer os-getConsoleOutput as nova does with the libvirt driver.
func (s *stub) console(of novaConsole) {
	s.handle("POST compute/servers/"+someID+"/action", func(w http.ResponseWriter, r *http.Request) {
		var sent map[string]struct{ Length *int }
		_ = json.NewDecoder(r.Body).Decode(&sent)
		asked, known := sent["os-getConsoleOutput"]
		if !known || len(sent) != 1 || asked.Length != nil && *asked.Length < -1 {
			refused(w, &novaRefusal{http.StatusBadRequest, "badRequest", "Invalid input for field/attribute length."})
			return
		}
		switch {
		case of.unplaced:
			refused(w, &novaRefusal{http.StatusConflict, "conflictingRequest", "Instance " + someID + " is not ready"})
		case of.undefined:
			refused(w, &novaRefusal{http.StatusNotFound, "itemNotFound", "Instance " + someID + " could not be found."})
		case of.closed:
			refused(w, &novaRefusal{http.StatusNotFound, "itemNotFound", "Guest does not have a console available."})
		case of.unable:
			refused(w, &novaRefusal{http.StatusNotImplemented, "notImplemented", "The requested functionality is not supported."})
		default:
			_ = json.NewEncoder(w).Encode(map[string]string{"output": novaOutput(of.printed, asked.Length)})
		}
	})
}

// novaOutput returns what nova shows of what a guest printed.
func novaOutput(printed string, length *int) string {
	const kept = 100 << 10
	printed = printed[max(0, len(printed)-kept):]
	if length != nil {
		lines := strings.Split(printed, "\n")
		switch {
		case *length == 0:
			lines = nil
		case *length < 0: // Python drops the first line of the list
			lines = lines[min(-*length, len(lines)):]
		default:
			lines = lines[max(0, len(lines)-*length):]
		}
		printed = strings.Join(lines, "\n")
	}
	var shown strings.Builder
	for i := range len(printed) {
		switch c := printed[i]; {
		case c >= 0x80:
			shown.WriteRune('\ufffd')
		case c >= ' ' || c == '\n' || c == '\t':
			shown.WriteByte(c)
		}
	}
	return shown.String()
}
