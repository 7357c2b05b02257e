package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// kinds are the kinds of objects, by the names of their resources.
var kinds = map[string]string{"vms": "VM", "networks": "Network", "clouds": "Cloud"}

// nameOf returns the name that the simulation has for a call, empty if it has none.
func (r *replay) nameOf(side string, req *http.Request, body []byte) string {
	if side == cloudSide {
		return r.nameOfCloudCall(req, body)
	}
	_, path, ofGroup := strings.Cut(req.URL.Path, "/v1alpha1/")
	parts := strings.Split(strings.TrimPrefix(path, "namespaces/"+r.world.name+"/"), "/")
	if !ofGroup || len(parts) < 2 || kinds[parts[0]] == "" {
		return ""
	}
	verb := strings.ToLower(req.Method)
	switch {
	case len(parts) == 3:
		verb = "patch status of"
	case req.Method == http.MethodGet:
		verb = "read"
	}
	name := parts[1]
	if name == r.world.name {
		name = "default"
	}
	return fmt.Sprintf("%s %s/%s", verb, kinds[parts[0]], name)
}

func (r *replay) nameOfCloudCall(req *http.Request, body []byte) string {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	verb := map[string]string{http.MethodGet: "get", http.MethodPatch: "update", http.MethodDelete: "delete"}[req.Method]
	switch {
	case parts[0] == "events": // a stream
		return ""
	case parts[0] == "networks" && req.Method == http.MethodPost:
		return "cloud create network"
	case parts[0] == "networks" && len(parts) == 1:
		return "cloud list networks"
	case parts[0] == "networks":
		return "cloud " + verb + " network"
	case parts[0] == "check":
		return "cloud check " + parts[1]
	case parts[0] != "servers":
		return "cloud " + parts[0]
	case req.Method == http.MethodPost:
		var create struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(body, &create)
		return "cloud create " + create.Name
	case len(parts) == 1:
		return "cloud list"
	case len(parts) == 3:
		verb = parts[2]
	}
	return fmt.Sprintf("cloud %s s%d", verb, 1+slices.Index(r.servers(), parts[1]))
}
