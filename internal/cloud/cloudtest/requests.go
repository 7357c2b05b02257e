package cloudtest

import (
	"maps"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// Changes returns the changes of a server of which tests record the requests, by names.
func Changes() map[string]cloud.Update {
	size := cloud.Update{cloud.SetCPU(4), cloud.SetMemory(8192)}
	disks := cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 2048}, cloud.SetDisk{Name: "logs", SizeMiB: 1024}}
	labels := cloud.Update{
		cloud.SetLabel{Key: "env", Value: "prod"}, cloud.SetLabel{Key: "new", Value: "yes"}, cloud.SetLabel{Key: "owner/uid", Value: "u2"},
		cloud.RemoveLabel("team"), cloud.RemoveLabel("absent"),
	}
	on, off, suspended := cloud.SetPower{State: cloud.PowerOn}, cloud.SetPower{State: cloud.PowerOff}, cloud.SetPower{State: cloud.PowerSuspended}
	hardware := slices.Concat(size, disks)
	return map[string]cloud.Update{
		"nothing":                 nil,
		"cpu":                     {cloud.SetCPU(4)},
		"memory":                  {cloud.SetMemory(8192)},
		"memory of part of a GiB": {cloud.SetMemory(1536)},
		"cpu and memory":          size,
		"flavor":                  {cloud.SetFlavor("large")},
		"flavor that is gone":     {cloud.SetFlavor("gone")},
		"flavor, labels and on":   slices.Concat(cloud.Update{cloud.SetFlavor("large"), on}, labels),
		"disk":                    {cloud.SetDisk{Name: "data", SizeMiB: 2048}},
		"two disks":               disks,
		"smaller disk":            {cloud.SetDisk{Name: "data", SizeMiB: 512}},
		"new disk of a type":      {cloud.SetDisk{Name: "logs", SizeMiB: 1024, Type: "fast"}},
		"new disk that is kept":   {cloud.SetDisk{Name: "logs", SizeMiB: 1024, Keep: true}},
		"kept disk":               {cloud.SetDiskKeep{Name: "data", Keep: true}},
		"kept disk that grows":    {cloud.SetDisk{Name: "data", SizeMiB: 2048}, cloud.SetDiskKeep{Name: "data", Keep: true}},
		"disk that is not kept":   {cloud.SetDiskKeep{Name: "data"}},
		"root disk":               {cloud.SetRootDisk(20 << 10)},
		"root disk and off":       {cloud.SetRootDisk(20 << 10), off},
		"size and disks":          hardware,
		"label set":               {cloud.SetLabel{Key: "new", Value: "yes"}},
		"label changed":           {cloud.SetLabel{Key: "env", Value: "prod"}},
		"label removed":           {cloud.RemoveLabel("team")},
		"labels":                  labels,
		"labels and cpu":          slices.Concat(labels, cloud.Update{cloud.SetCPU(4)}),
		"on":                      {on},
		"off":                     {off},
		"off by the guest":        {cloud.SetPower{State: cloud.PowerOff, Soft: true}},
		"suspended":               {suspended},
		"size and on":             slices.Concat(size, cloud.Update{on}),
		"size and off":            slices.Concat(size, cloud.Update{off}),
		"size and suspended":      slices.Concat(size, cloud.Update{suspended}),
		"security groups":         {cloud.SetSecurityGroups("ssh\nweb")},
		"public address":          {cloud.SetPublicAddress("ext-net")},
		"no public address":       {cloud.RemovePublicAddress{}},
		"allowed addresses":       {cloud.SetAllowedAddresses("10.0.0.192/28\n10.0.0.250")},
		"no allowed addresses":    {cloud.SetAllowedAddresses("")},
		"groups and off":          {cloud.SetSecurityGroups("ssh\nweb"), off},
		"labels and off":          slices.Concat(labels, cloud.Update{off}),
		"all and off":             slices.Concat(hardware, labels, cloud.Update{off}),
		"all and suspended":       slices.Concat(hardware, labels, cloud.Update{suspended}),
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
		"disks of types":  {Disks: "data=1024=fast logs=2048=a+type"},
		"kept disks":      {Disks: "data=1024=fast=keep logs=2048==keep more=1024"},
		"root disk":       {RootDisk: cloud.RootDisk{SizeMiB: 20 << 10}},
		"typed root disk": {RootDisk: cloud.RootDisk{SizeMiB: 20 << 10, Type: "fast"}, Disks: "data=1024"},
		"root disk type":  {RootDisk: cloud.RootDisk{Type: "fast"}},
		"zone":            {Zone: zone},
		"apart":           {AntiAffinity: cloud.AntiAffinity{Group: "c/ns/web", Required: true}},
		"preferred apart": {AntiAffinity: cloud.AntiAffinity{Group: "c/ns/web"}},
		"security groups": {SecurityGroups: "ssh\nweb"},
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
