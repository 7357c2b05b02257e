package vcsim

import (
	"maps"
	"regexp"
	"strings"
)

// The names of calls of the property collector say what is read.
const (
	// ListCall is the first page of a listing, and NextCall a further one.
	ListCall = "RetrievePropertiesEx: all VMs"
	NextCall = "ContinueRetrievePropertiesEx"
	// TemplatesCall is the read of the templates.
	TemplatesCall = "RetrievePropertiesEx: templates"
	// TaskCall is the read of a task.
	TaskCall = "RetrievePropertiesEx: Task"
)

var firstObject = regexp.MustCompile(`<objectSet[^>]*>\s*<obj type="(\w+)"`)

// callOf returns the name of a call for Calls: the SOAP method, and what it reads.
func callOf(method, body string) string {
	if method != "RetrievePropertiesEx" && method != "RetrieveProperties" {
		return method
	}
	kind := "?"
	if found := firstObject.FindStringSubmatch(body); found != nil {
		kind = found[1]
	}
	switch {
	case strings.Contains(body, "snapshot.currentSnapshot"):
		return TemplatesCall
	case kind == "Folder" && strings.Contains(body, "config.hardware.numCPU"):
		return ListCall
	case kind == "Folder" && strings.Contains(body, "summary.config.instanceUuid"):
		return method + ": hidden VMs"
	}
	return method + ": " + kind
}

// Calls returns how many calls of each kind came since the last ForgetCalls.
func (f *Front) Calls() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}

// ForgetCalls makes Calls count from 0.
func (f *Front) ForgetCalls() { f.set(func() { clear(f.calls) }) }
