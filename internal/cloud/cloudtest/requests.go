package cloudtest

import (
	"maps"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// Changes returns the changes of a server of which tests record the requests, by names.
func Changes() map[string]cloud.UpdateServer {
	size := cloud.UpdateServer{CPU: new(4), MemoryMiB: new(8192)}
	labels := map[string]*string{"env": new("prod"), "new": new("yes"), "owner/uid": new("u2"), "team": nil, "absent": nil}
	hardware := size
	hardware.Disks = "data=2048 logs=1024"
	all := hardware
	all.Labels, all.PowerState = labels, new(cloud.PowerOff)
	suspended := all
	suspended.PowerState = new(cloud.PowerSuspended)
	flavored := cloud.UpdateServer{Flavor: new("large"), Labels: labels, PowerState: new(cloud.PowerOn)}
	return map[string]cloud.UpdateServer{
		"nothing":                 {},
		"cpu":                     {CPU: new(4)},
		"memory":                  {MemoryMiB: new(8192)},
		"memory of part of a GiB": {MemoryMiB: new(1536)},
		"cpu and memory":          size,
		"flavor":                  {Flavor: new("large")},
		"flavor that is gone":     {Flavor: new("gone")},
		"flavor, labels and on":   flavored,
		"disk":                    {Disks: "data=2048"},
		"two disks":               {Disks: "data=2048 logs=1024"},
		"smaller disk":            {Disks: "data=512"},
		"size and disks":          hardware,
		"label set":               {Labels: map[string]*string{"new": new("yes")}},
		"label changed":           {Labels: map[string]*string{"env": new("prod")}},
		"label removed":           {Labels: map[string]*string{"team": nil}},
		"labels":                  {Labels: labels},
		"labels and cpu":          {Labels: labels, CPU: new(4)},
		"on":                      {PowerState: new(cloud.PowerOn)},
		"off":                     {PowerState: new(cloud.PowerOff)},
		"off by the guest":        {PowerState: new(cloud.PowerOff), Soft: true},
		"suspended":               {PowerState: new(cloud.PowerSuspended)},
		"size and on":             {CPU: new(4), MemoryMiB: new(8192), PowerState: new(cloud.PowerOn)},
		"size and off":            {CPU: new(4), MemoryMiB: new(8192), PowerState: new(cloud.PowerOff)},
		"size and suspended":      {CPU: new(4), MemoryMiB: new(8192), PowerState: new(cloud.PowerSuspended)},
		"labels and off":          {Labels: labels, PowerState: new(cloud.PowerOff)},
		"all and off":             all,
		"all and suspended":       suspended,
	}
}

// Creates returns the creates of which tests record the requests, by names. The networks, the zone and the template are those
// that the cloud has.
func Creates(networks []string, zone, template string) map[string]cloud.CreateServer {
	creates := map[string]cloud.CreateServer{
		"minimal":         {},
		"cpu":             {CPU: 2},
		"memory":          {MemoryMiB: 4096},
		"size":            {CPU: 4, MemoryMiB: 8192},
		"flavor":          {Flavor: "large"},
		"template":        {Template: template},
		"folder":          {Folder: "team"},
		"network":         {NetworkID: networks[0]},
		"interfaces":      {Interfaces: []cloud.Attachment{{NetworkID: networks[0]}, {NetworkID: networks[1]}}},
		"address":         {Interfaces: []cloud.Attachment{{NetworkID: networks[0], Addresses: []string{"10.0.0.5"}}}},
		"on":              {PowerState: cloud.PowerOn},
		"off":             {PowerState: cloud.PowerOff},
		"labels":          {Labels: map[string]string{"env": "dev", "owner/uid": "u1"}},
		"disks":           {Disks: "data=1024 logs=2048"},
		"zone":            {Zone: zone},
		"apart":           {AntiAffinity: cloud.AntiAffinity{Group: "c/ns/web", Required: true}},
		"preferred apart": {AntiAffinity: cloud.AntiAffinity{Group: "c/ns/web"}},
		"user data":       {UserData: cloud.UserData("#cloud-config\n")},
		"all": {
			CPU: 4, MemoryMiB: 8192, Template: template, Zone: zone, NetworkID: networks[0], Labels: map[string]string{"env": "dev", "owner/uid": "u1"},
			PowerState: cloud.PowerOn, UserData: cloud.UserData("#cloud-config\n"),
		},
		"all with disks and off": {
			CPU: 4, MemoryMiB: 8192, Template: template, Zone: zone, Labels: map[string]string{"env": "dev", "owner/uid": "u1"}, Disks: "data=1024 logs=2048",
			PowerState: cloud.PowerOff, UserData: cloud.UserData("#cloud-config\n"), Interfaces: []cloud.Attachment{{NetworkID: networks[0]}, {NetworkID: networks[1]}},
		},
	}
	for name, req := range creates {
		req.Name, req.IdempotencyKey = "web", "6f1c2c0e-6c1c-4f6e-9d5e-0a8a3a1f2b3c"
		creates[name] = req
	}
	return creates
}

// Sorted returns the names of cases in the order in which they are recorded.
func Sorted[C any](cases map[string]C) []string { return slices.Sorted(maps.Keys(cases)) }
