package vcsim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// omitted are properties of an object that are left out of answers.
type omitted struct {
	object types.ManagedObjectReference
	paths  []string
}

// Omit leaves properties of an object, and those below them, out of answers until restore is called, as a
// vCenter does with what it cannot read. It does not find a VM without the instance UUID by that.
func (f *Front) Omit(object types.ManagedObjectReference, paths ...string) (restore func()) {
	f.set(func() { f.omitted = &omitted{object, paths} })
	return func() { f.set(func() { f.omitted = nil }) }
}

var oneObject = regexp.MustCompile(`(?s)<objects>.*?</objects>`)

// apply changes the answer to a request.
func (o *omitted) apply(method, answer string) string {
	if method == "FindAllByUuid" && o.has("config.instanceUuid") {
		return strings.ReplaceAll(answer, fmt.Sprintf(`<returnval type=%q>%s</returnval>`, o.object.Type, o.object.Value), "")
	}
	return oneObject.ReplaceAllStringFunc(answer, func(object string) string {
		if !strings.Contains(object, fmt.Sprintf(`<obj type=%q>%s</obj>`, o.object.Type, o.object.Value)) {
			return object
		}
		return propertySet.ReplaceAllStringFunc(object, func(set string) string {
			if o.has(propertySet.FindStringSubmatch(set)[1]) {
				return ""
			}
			return set
		})
	})
}

var propertySet = regexp.MustCompile(`(?s)<propSet><name>(.*?)</name>.*?</propSet>`)

func (o *omitted) has(path string) bool {
	for _, prefix := range o.paths {
		if path == prefix || strings.HasPrefix(path, prefix+".") {
			return true
		}
	}
	return false
}
