package behaviour_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestInvalidVSphereCloudIsRefused(t *testing.T) { refused("Cloud", invalidVSphereClouds).run(t) }

// vsphere returns the spec of a Cloud of type VSphere with these fields beside them.
func vsphere(fields string) string {
	return `{endpoint: "https://c.example.com/sdk", type: VSphere, credentialsSecretRef: {name: x}, ` + fields + `}`
}

var invalidVSphereClouds = map[string]refusal{
	"type VSphere without its block":        {vsphere(`pollInterval: 30s`), "vsphere holds the settings of type VSphere"},
	"type VSphere with the block rest":      {vsphere(`vsphere: {folder: f}, rest: {}`), "rest holds settings of type REST"},
	"type REST with the block vsphere":      {`{endpoint: "https://c.example.com", vsphere: {folder: f}}`, "vsphere holds the settings of type VSphere"},
	"type VSphere without credentials":      {`{endpoint: "https://c.example.com/sdk", type: VSphere, vsphere: {folder: f}}`, "a cloud of type VSphere needs credentials"},
	"vsphere has no folder":                 {vsphere(`vsphere: {datacenter: DC0}`), "spec.vsphere.folder: Required value"},
	"vsphere.folder is empty":               {vsphere(`vsphere: {folder: ""}`), "spec.vsphere.folder"},
	"vsphere.cloneMode is unknown":          {vsphere(`vsphere: {folder: f, cloneMode: Instant}`), `Unsupported value: "Instant"`},
	"vsphere.templates.default is too long": {vsphere(`vsphere: {folder: f, templates: {default: ` + strings.Repeat("t", 81) + `}}`), "spec.vsphere.templates.default: Too long"},
	"vsphere has an unknown field":          {vsphere(`vsphere: {folder: f, cluster: c}`), `unknown field "spec.vsphere.cluster"`},
}

func TestVSphereCloudIsAccepted(t *testing.T) {
	all := cases{}
	for name, spec := range map[string]string{
		"with a folder alone":  vsphere(`vsphere: {folder: f}`),
		"with all settings":    vsphere(`vsphere: {datacenter: DC0, folder: f/g, resourcePool: p, datastore: d, templates: {folder: t, default: x}, cloneMode: Linked, networks: {default: VM Network}}`),
		"REST without a block": `{endpoint: "https://c.example.com"}`,
	} {
		all[name] = func(t *T) {
			output, err := dryRun(t, "Cloud", spec)
			t.Expect(err).NotTo(HaveOccurred(), output)
		}
	}
	all.run(t)
}
