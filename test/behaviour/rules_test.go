package behaviour_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

// ruleCase breaks one validation rule of a CRD: by the spec of a new object or, with an
// edit, by a merge patch of an object that has spec and status.
type ruleCase struct{ kind, spec, status, edit, says string }

const (
	restCloud   = `{endpoint: "https://c.example.com"}`
	aVM         = `{vmname: web, template: debian-13, cloudRef: {name: home}}`
	aClass      = `{hardware: {cpu: 1, memory: 1}}`
	oneProbe    = `readinessProbe needs at least one of address: {}, guestHeartbeat: {} and tcpSocket`
	socketRule  = `periodSeconds, timeoutSeconds and failureThreshold need tcpSocket: add it, or remove them`
	tagKeys     = "a key of tags is 1-63 letters a-z and A-Z, digits, '.', '_' and '-', the last three not at its ends"
	tagLength   = "the keys of tags have more than 240 characters together: use shorter or fewer keys"
	tagTotal    = "tags have more than 1024 characters in all keys and values together: use shorter or fewer tags"
	tagCase     = "two keys of tags differ only in upper and lower case, which some clouds do not keep apart: remove or rename one"
	allowedForm = "must be an IP address such as 192.168.0.10, or a range of several such as 192.168.0.0/28 without address bits behind the prefix, in its canonical form"
	coresRule   = "cpu is a whole number of cores, 1-1024"
	memoryRule  = "memory is a whole number of GiB, 1-65536, or a quantity in whole Mi, Gi or Ti up to 64Ti, such as 512Mi"
	twoSizes    = "className cannot be set together with cpu or memory: remove them to use the class, or remove className"
	otherSizes  = "flavor cannot be set together with className, cpu or memory: remove them to use the flavor, or remove flavor"
	flavorRule  = "flavor is the name that the flavor has in the cloud, of printable characters, among which the only space is U+0020"
	// twoNetworks is said of a VM or VmGroup with networkRef and network.
	twoNetworks = "networkRef cannot be set together with network: name its Network in an interface of network.interfaces, or remove network"
	aVMsID      = `{vmId: v1, cloud: home}`
	diskVM      = `{vmname: web, disks: [{name: data, size: 20Gi}]}`
	sizeRule    = "a size is a whole number of Gi or Ti, 1Gi-64Ti, such as 20Gi"
	diskStays   = "a disk that the VM has cannot be removed, since its data would be lost; remove it in the cloud first, or delete this VM and make another"
	// The disk was made, and is larger than the new size.
	diskVMsStatus    = `{vmId: v1, cloud: home, disks: [{name: data, size: 20Gi}]}`
	diskTypeRule     = "the type of a disk is the name that it has in the cloud, without control characters and spaces other than the usual one"
	diskTypeStays    = "the type of a disk that the VM has cannot be changed: set it back to what it was, or add another disk"
	rootVM           = `{vmname: web, rootDisk: {size: 20Gi, type: fast}}`
	rootVMsStatus    = `{vmId: v1, cloud: home, rootDisk: {size: 20Gi}}`
	rootTypeStays    = "rootDisk.type cannot be changed once the VM exists; delete this VM and make another"
	aNetwork         = `{cidr: 10.0.0.0/24, gateway: 10.0.0.1, cloudRef: {name: home}}`
	dualStackNetwork = `{cidr: 10.0.0.0/24, gateway: 10.0.0.1, cloudRef: {name: home}, ipv6CIDR: "fd00:10::/64"}`
	otherRangeStatus = `{networkId: n1, cloud: home, attachedVMs: 0, cidr: 10.0.0.0/24, ipv6CIDR: "fd00:99::/64"}`
	dualStackStatus  = `{networkId: n1, cloud: home, attachedVMs: 0, cidr: 10.0.0.0/24, ipv6CIDR: "fd00:10::/64"}`
	routedNetwork    = `{cidr: 10.0.0.0/24, gateway: 10.0.0.1, cloudRef: {name: home}, router: {externalNetwork: ext-net}}`
	aNetsID          = `{networkId: n1, cloud: home, attachedVMs: 0}`
	aRouterStatus    = `{networkId: n1, cloud: home, attachedVMs: 0, router: {externalNetwork: ext-net}}`
	aSnapsID         = `{snapshotId: s1, vmId: v1, cloud: home}`
	aConsole         = `{vmName: web, publicKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`
	theSnap          = " cannot be changed; delete this VMSnapshot and make another"
	theVM            = " cannot be changed once the VM exists; delete this VM and make another"
	keyRule          = "must be one line of a public key, as in a file id_ed25519.pub: a type such as ssh-ed25519 or ssh-rsa, the base64 of the key, and optionally a comment; no options and no private key"
	theNet           = " cannot be changed once the network exists; delete this Network and make another"
)

// longTags have keys of 241 characters.
var longTags = "a" + strings.Repeat("x", 59) + ": x, b" + strings.Repeat("x", 59) + ": x, c" + strings.Repeat("x", 59) + ": x, d" + strings.Repeat("x", 60) + ": x"

// largeTags have 1026 characters.
var largeTags = "a: " + strings.Repeat("x", 255) + ", b: " + strings.Repeat("x", 255) + ", c: " + strings.Repeat("x", 255) + ", d: " + strings.Repeat("x", 255) + ", e: x"

// ruleCases are what kubectl prints of each rule, from the field on.
var ruleCases = []ruleCase{
	{kind: "VM", spec: `{vmname: web.}`, says: `spec.vmname: Invalid value: "web.": ` + nameRule},
	{kind: "VM", spec: `{vmname: web, managementPolicy: ObserveOnly}`, says: "spec.import: Required value: managementPolicy ObserveOnly needs import.vmId: the id of the VM to observe"},
	{kind: "VM", spec: `{vmname: web, import: {vmId: a}}`, edit: `{"spec":{"import":{"vmId":"b"}}}`,
		says: "spec.import: Forbidden: import cannot be changed once it is set; delete the VM with deletionPolicy Orphan and make another"},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"import":{"vmId":"v1"}}}`, says: "spec.import: Forbidden: import cannot be added once the VM exists"},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"vmname":"other"}}`, says: "spec.vmname: Forbidden: vmname" + theVM},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"cloudRef":{"name":"other"}}}`, says: "spec.cloudRef: Forbidden: cloudRef" + theVM},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"template":null}}`, says: "spec.template: Forbidden: template" + theVM},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"folder":"databases"}}`, says: "spec.folder: Forbidden: folder" + theVM},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"zone":"z1"}}`, says: "spec.zone: Forbidden: zone" + theVM},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"antiAffinity":{"group":"db"}}}`, says: "spec.antiAffinity: Forbidden: antiAffinity" + theVM},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"networkRef":{"name":"net"}}}`, says: "spec.networkRef: Forbidden: networkRef" + theVM},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"network":{"interfaces":[{"name":"eth0","networkRef":{"name":"net"}}]}}}`, says: "spec.network: Forbidden: network" + theVM},
	{kind: "VM", spec: `{vmname: web, networkRef: {name: net}, network: {interfaces: [{name: eth0, networkRef: {name: net}}]}}`, says: "spec.networkRef: Forbidden: " + twoNetworks},
	{kind: "VmGroup", spec: `{networkRef: {name: net}, network: {interfaces: [{name: eth0, networkRef: {name: net}}]}}`, says: "spec.networkRef: Forbidden: " + twoNetworks},
	{kind: "VM", spec: `{vmname: web, network: {interfaces: [{name: eth0, networkRef: {name: net}, addresses: [10.0.0.5/24]}]}}`,
		says: `spec.network.interfaces[0].addresses[0]: Invalid value: "10.0.0.5/24": an address is an IP address in its canonical form and without a prefix length, such as 192.168.0.10 or fd00::10`},
	{kind: "VM", spec: `{vmname: web, network: {interfaces: [{name: a, networkRef: {name: net}, addresses: [10.0.0.5]}, {name: b, networkRef: {name: net}, addresses: [10.0.0.5]}]}}`,
		says: "spec.network.interfaces: Invalid value: two interfaces on one Network cannot have the same address: change one of them"},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"spec":{"bootstrap":{"cloudInit":{"sshAuthorizedKeys":["ssh-rsa AAAA"]}}}}`,
		says: "spec.bootstrap: Forbidden: bootstrap cannot be changed once the VM exists, since it is read at the first boot; delete this VM and make another"},
	{kind: "VM", spec: `{vmname: web, bootstrap: {cloudInit: {}}}`,
		says: "spec.bootstrap.cloudInit.userDataSecretRef: Required value: cloudInit needs userDataSecretRef, sshAuthorizedKeys or both"},
	{kind: "VM", spec: `{vmname: web, bootstrap: {cloudInit: {sshAuthorizedKeys: [ssh-dss AAAA]}}}`,
		says: `spec.bootstrap.cloudInit.sshAuthorizedKeys[0]: Invalid value: "ssh-dss AAAA": ` + keyRule},
	{kind: "VmGroup", spec: `{bootstrap: {cloudInit: {}}}`,
		says: "spec.bootstrap.cloudInit.userDataSecretRef: Required value: cloudInit needs userDataSecretRef, sshAuthorizedKeys or both"},
	{kind: "VmGroup", spec: `{bootstrap: {cloudInit: {sshAuthorizedKeys: ["ssh-rsa AAAA\nssh-rsa BBBB"]}}}`,
		says: `spec.bootstrap.cloudInit.sshAuthorizedKeys[0]: Invalid value: "ssh-rsa AAAA\nssh-rsa BBBB": ` + keyRule},
	{kind: "VM", spec: `{vmname: web, tags: {samplecontroller.k8s.io/uid: x}}`, says: "spec.tags: Invalid value: " + tagKeys},
	{kind: "VmGroup", spec: `{tags: {"": x}}`, says: "spec.tags: Invalid value: " + tagKeys},
	{kind: "VM", spec: `{vmname: web, tags: {` + longTags + `}}`, says: "spec.tags: Invalid value: " + tagLength},
	{kind: "VmGroup", spec: `{tags: {` + longTags + `}}`, says: "spec.tags: Invalid value: " + tagLength},
	{kind: "VM", spec: `{vmname: web, tags: {` + largeTags + `}}`, says: "spec.tags: Invalid value: " + tagTotal},
	{kind: "VmGroup", spec: `{tags: {` + largeTags + `}}`, says: "spec.tags: Invalid value: " + tagTotal},
	{kind: "VM", spec: `{vmname: web, publicAddress: {network: ext}}`, status: aVMsID, edit: `{"spec":{"publicAddress":{"network":"other"}}}`,
		says: "spec.publicAddress.network: Forbidden: publicAddress.network cannot be changed once the VM exists; remove publicAddress, wait until the VM has no public address, and add it again"},
	{kind: "VM", spec: aVM, status: `{vmId: v1, cloud: home, publicAddress: 203.0.113.1}`, edit: `{"spec":{"publicAddress":{"network":"other"}}}`,
		says: "spec.publicAddress: Forbidden: publicAddress cannot be added while the VM still has its former public address; add it once status.publicAddress is empty"},
	{kind: "VmGroup", spec: `{publicAddress: {network: ext}}`, edit: `{"spec":{"publicAddress":{"network":"other"}}}`,
		says: "spec.publicAddress.network: Forbidden: publicAddress.network cannot be changed; remove publicAddress, wait until the members have no public address, and add it again"},
	{kind: "VM", spec: `{vmname: web, securityGroups: ["a\nb"]}`, says: `spec.securityGroups[0]: Invalid value: "a\nb": the name of a security group has no control characters`},
	{kind: "VM", spec: `{vmname: web, allowedAddresses: [10.0.0.1/32]}`, says: `spec.allowedAddresses[0]: Invalid value: "10.0.0.1/32": ` + allowedForm},
	{kind: "VmGroup", spec: `{allowedAddresses: [10.0.0.1/28]}`, says: `spec.allowedAddresses[0]: Invalid value: "10.0.0.1/28": ` + allowedForm},
	{kind: "VmGroup", spec: `{securityGroups: ["a\nb"]}`, says: `spec.securityGroups[0]: Invalid value: "a\nb": the name of a security group has no control characters`},
	{kind: "VM", spec: `{vmname: web, tags: {Env: a, env: b}}`, says: "spec.tags: Invalid value: " + tagCase},
	{kind: "VmGroup", spec: `{tags: {Env: a, env: b}}`, says: "spec.tags: Invalid value: " + tagCase},
	{kind: "VM", spec: `{vmname: web, readinessProbe: {}}`, says: `spec.readinessProbe: Invalid value: ` + oneProbe},
	{kind: "VmGroup", spec: `{readinessProbe: {}}`, says: `spec.readinessProbe: Invalid value: ` + oneProbe},
	{kind: "VmGroup", spec: `{readinessProbe: {address: {}, periodSeconds: 10}}`, says: `spec.readinessProbe: Invalid value: ` + socketRule},
	{kind: "VM", spec: `{vmname: web, readinessProbe: {address: {}, failureThreshold: 3}}`, says: `spec.readinessProbe: Invalid value: ` + socketRule},
	{kind: "VmGroup", spec: `{powerOffTimeout: 0s}`, says: `spec.powerOffTimeout: Invalid value: "0s": powerOffTimeout must be 1s to 24h`},
	{kind: "VmGroup", spec: `{powerOffTimeout: 1d}`, says: `spec.powerOffTimeout: Invalid value: "1d": powerOffTimeout is a duration in h, m and s, such as 5m`},
	{kind: "VM", spec: `{vmname: web, powerOffTimeout: 25h}`, says: `spec.powerOffTimeout: Invalid value: "25h": powerOffTimeout must be 1s to 24h`},
	{kind: "VM", spec: `{vmname: web, powerOffTimeout: "90"}`, says: `spec.powerOffTimeout: Invalid value: "90": powerOffTimeout is a duration in h, m and s, such as 5m`},
	{kind: "VmGroup", spec: `{disks: [{name: data, size: 1500M}]}`, says: `spec.disks[0].size: Invalid value: "1500M": ` + sizeRule},
	{kind: "VM", spec: `{vmname: web, disks: [{name: data, size: 65Ti}]}`, says: `spec.disks[0].size: Invalid value: "65Ti": ` + sizeRule},
	{kind: "VM", spec: diskVM, status: diskVMsStatus, edit: `{"spec":{"disks":[{"name":"data","size":"15Gi"}]}}`,
		says: "spec.disks: Forbidden: a disk cannot shrink: set its size back to what it was, or add another disk"},
	{kind: "VM", spec: diskVM, status: diskVMsStatus, edit: `{"spec":{"disks":[{"name":"data","size":"20Gi","type":"fast"}]}}`, says: "spec.disks: Forbidden: " + diskTypeStays},
	{kind: "VM", spec: `{vmname: web, disks: [{name: data, size: 20Gi, type: "a\nb"}]}`, says: `spec.disks[0].type: Invalid value: "a\nb": ` + diskTypeRule},
	{kind: "VM", spec: `{vmname: web, rootDisk: {type: "a\u2028b"}}`, says: `spec.rootDisk.type: Invalid value: "a\u2028b": ` + diskTypeRule},
	{kind: "VmGroup", spec: `{rootDisk: {type: "a\nb"}}`, says: `spec.rootDisk.type: Invalid value: "a\nb": ` + diskTypeRule},
	{kind: "VmGroup", spec: `{disks: [{name: data, size: 20Gi, type: "a\nb"}]}`, says: `spec.disks[0].type: Invalid value: "a\nb": ` + diskTypeRule},
	{kind: "VmGroup", spec: `{rootDisk: {}}`, says: "spec.rootDisk: Required value: rootDisk has neither size nor type: set one of them, or remove rootDisk"},
	{kind: "VM", spec: `{vmname: web, rootDisk: {size: 1500M}}`, says: `spec.rootDisk.size: Invalid value: "1500M": ` + sizeRule},
	{kind: "VM", spec: rootVM, status: rootVMsStatus, edit: `{"spec":{"rootDisk":{"size":"15Gi"}}}`,
		says: "spec.rootDisk.size: Forbidden: the root disk cannot shrink: set rootDisk.size back to what it was, or make another VM with a smaller one"},
	{kind: "VM", spec: rootVM, status: rootVMsStatus, edit: `{"spec":{"rootDisk":{"type":"slow"}}}`, says: "spec.rootDisk.type: Forbidden: " + rootTypeStays},
	{kind: "VM", spec: rootVM, status: rootVMsStatus, edit: `{"spec":{"rootDisk":null}}`, says: "spec.rootDisk.type: Forbidden: " + rootTypeStays},
	{kind: "VM", spec: `{vmname: web}`, status: rootVMsStatus, edit: `{"spec":{"rootDisk":{"type":"slow"}}}`, says: "spec.rootDisk.type: Forbidden: " + rootTypeStays},
	{kind: "VM", spec: diskVM, status: diskVMsStatus, edit: `{"spec":{"disks":[{"name":"other","size":"20Gi"}]}}`, says: "spec.disks: Forbidden: " + diskStays},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"status":{"vmId":"v2"}}`, says: "status.vmId: Forbidden: status.vmId cannot be changed once it is set"},

	{kind: "VM", spec: `{vmname: web, className: small, memory: 1}`, says: "spec.className: Forbidden: " + twoSizes},
	{kind: "VmGroup", spec: `{className: small, cpu: 1}`, says: "spec.className: Forbidden: " + twoSizes},
	{kind: "VM", spec: `{vmname: web, flavor: m1.small, cpu: 1}`, says: "spec.flavor: Forbidden: " + otherSizes},
	{kind: "VmGroup", spec: `{flavor: m1.small, className: small}`, says: "spec.flavor: Forbidden: " + otherSizes},
	{kind: "VM", spec: `{vmname: web, flavor: "a\nb"}`, says: `spec.flavor: Invalid value: "a\nb": ` + flavorRule},
	{kind: "VmGroup", spec: `{flavor: "a\u2028b"}`, says: `spec.flavor: Invalid value: "a\u2028b": ` + flavorRule},
	{kind: "VM", spec: `{vmname: web, cpu: "0"}`, says: `spec.cpu: Invalid value: "0": ` + coresRule},
	{kind: "VM", spec: `{vmname: web, memory: 512M}`, says: `spec.memory: Invalid value: "512M": ` + memoryRule},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"status":{"class":{"name":"small","hardware":{"cpu":1025,"memory":1}}}}`,
		says: `status.class.hardware.cpu: Invalid value: 1025: ` + coresRule},
	{kind: "VM", spec: aVM, status: aVMsID, edit: `{"status":{"class":{"name":"small","hardware":{"cpu":1,"memory":"8"}}}}`,
		says: `status.class.hardware.memory: Invalid value: "8": ` + memoryRule},
	{kind: "VmGroup", spec: `{cpu: 1025}`, says: `spec.cpu: Invalid value: 1025: ` + coresRule},
	{kind: "VmGroup", spec: `{memory: 0}`, says: `spec.memory: Invalid value: 0: ` + memoryRule},
	{kind: "VMClass", spec: `{hardware: {cpu: 500m, memory: 1}}`, says: `spec.hardware.cpu: Invalid value: "500m": ` + coresRule},
	{kind: "VMClass", spec: `{hardware: {cpu: 1, memory: 65Ti}}`, says: `spec.hardware.memory: Invalid value: "65Ti": ` + memoryRule},
	{kind: "VMClass", spec: aClass, edit: `{"spec":{"hardware":{"cpu":2}}}`,
		says: "spec.hardware: Forbidden: hardware cannot be changed; create another VMClass, and change className of the VMs that are to have its size"},
	{kind: "VMClass", spec: aClass, edit: `{"spec":{"openstack":{"flavor":"m1.small"}}}`,
		says: "spec.openstack: Forbidden: openstack cannot be changed; create another VMClass, and change className of the VMs that are to have its flavor"},

	{kind: "VmGroup", spec: `{replicas: 1, cpu: 1, memory: 1, template: t, strategy: {maxUnavailable: 0, maxSurge: 0%}}`,
		says: "spec.strategy.maxUnavailable: Invalid value: maxUnavailable and maxSurge must not both be 0: no member could ever be replaced"},
	{kind: "VmGroup", spec: `{replicas: 1, cpu: 1, memory: 1, template: t, strategy: {maxUnavailable: 101%}}`,
		says: `spec.strategy.maxUnavailable: Invalid value: "101%": maxUnavailable must be a number, 0-10000, or a percentage, 0%-100%`},
	{kind: "VmGroup", spec: `{replicas: 1, cpu: 1, memory: 1, template: t, strategy: {maxSurge: -1}}`,
		says: `spec.strategy.maxSurge: Invalid value: -1: maxSurge must be a number, 0-10000, or a percentage, 0%-100%`},

	{kind: "Network", spec: `{gateway: 10.0.0.1}`, says: "spec.cidr: Required value: the network is created with a range, unless import names one that exists"},
	{kind: "Network", spec: `{cidr: 10.0.0.0/24}`, says: "spec.gateway: Required value: the network is created with a gateway, unless import names one that exists"},
	{kind: "Network", spec: `{cidr: 10.0.0.0/24, gateway: 10.0.0.1, import: {name: shared}}`,
		says: "spec.import: Forbidden: cidr and gateway of an imported network are those that it has in the cloud: remove them, or remove import"},
	{kind: "Network", spec: `{cidr: 10.0.0.0/24, gateway: 10.0.1.1}`, says: "spec.gateway: Invalid value: gateway must be an address inside cidr"},
	{kind: "Network", spec: `{cidr: 10.0.0.1/24, gateway: 10.0.0.1}`, says: `spec.cidr: Invalid value: "10.0.0.1/24": cidr must be a range such as 192.168.0.0/16, without address bits behind the prefix`},
	{kind: "Network", spec: `{cidr: 10.0.0.0/24, gateway: 10.0.0.1, ipv6CIDR: "fd00:10::/48"}`,
		says: `spec.ipv6CIDR: Invalid value: "fd00:10::/48": ipv6CIDR must be an IPv6 range with a prefix of 64 bits in its shortest form, such as fd00:10::/64`},
	{kind: "Network", spec: `{cidr: "fd00:1::/64", gateway: "fd00:1::1", ipv6CIDR: "fd00:10::/64"}`,
		says: "spec.ipv6CIDR: Invalid value: cidr has IPv6 addresses already: remove ipv6CIDR, or set cidr to an IPv4 range"},
	{kind: "Network", spec: `{import: {name: a}, ipv6CIDR: "fd00:10::/64"}`,
		says: "spec.ipv6CIDR: Forbidden: an imported network is not changed: remove ipv6CIDR, or remove import"},
	{kind: "Network", spec: dualStackNetwork, status: dualStackStatus, edit: `{"spec":{"ipv6CIDR":"fd00:11::/64"}}`, says: "spec.ipv6CIDR: Forbidden: ipv6CIDR cannot be changed or removed once the network has it; delete this Network and make another"},
	{kind: "Network", spec: dualStackNetwork, status: otherRangeStatus, edit: `{"spec":{"ipv6CIDR":"fd00:11::/64"}}`},
	{kind: "Network", spec: dualStackNetwork, status: otherRangeStatus, edit: `{"spec":{"ipv6CIDR":null}}`},
	{kind: "Network", spec: `{cidr: 10.0.0.0/24, gateway: first}`, says: `spec.gateway: Invalid value: "first": gateway must be an IP address such as 192.168.0.1`},
	{kind: "Network", spec: `{cidr: 10.0.0.0/24, gateway: 10.0.0.1, dnsNameservers: [resolver]}`,
		says: `spec.dnsNameservers[0]: Invalid value: "resolver": must be an IP address such as 192.168.0.53`},
	{kind: "Network", spec: `{cidr: 10.0.0.0/24, gateway: 10.0.0.1, dnsNameservers: ["fd00::53", "fd00:0::53"]}`,
		says: `spec.dnsNameservers: Invalid value: each address may be in the list once`},
	{kind: "Network", spec: `{import: {name: a}, dnsNameservers: [10.0.0.53]}`,
		says: "spec.dnsNameservers: Forbidden: an imported network is not changed: remove dnsNameservers, or remove import"},
	{kind: "Network", spec: `{import: {name: a}, router: {externalNetwork: ext-net}}`,
		says: "spec.router: Forbidden: an imported network gets no router: remove router, or remove import"},
	{kind: "Network", spec: routedNetwork, status: aRouterStatus, edit: `{"spec":{"router":null}}`, says: "spec.router: Forbidden: router cannot be removed once the network has one; delete this Network and make another"},
	{kind: "Network", spec: `{import: {name: a}}`, edit: `{"spec":{"import":{"name":"b"}}}`,
		says: "spec.import: Forbidden: import cannot be added, changed or removed; delete this Network and make another"},
	{kind: "Network", spec: aNetwork, status: aNetsID, edit: `{"spec":{"cidr":"10.0.0.0/25"}}`, says: "spec.cidr: Forbidden: cidr" + theNet},
	{kind: "Network", spec: aNetwork, status: aNetsID, edit: `{"spec":{"cloudRef":{"name":"other"}}}`, says: "spec.cloudRef: Forbidden: cloudRef" + theNet},
	{kind: "Network", spec: aNetwork, status: aNetsID, edit: `{"status":{"networkId":"n2"}}`, says: "status.networkId: Forbidden: status.networkId cannot be changed once it is set"},

	{kind: "VMSnapshot", spec: `{vmName: web, maxAge: 0s}`, says: `spec.maxAge: Invalid value: "0s": maxAge must be at least 1s`},
	{kind: "VMSnapshot", spec: `{vmName: web, maxAge: 7d}`, says: `spec.maxAge: Invalid value: "7d": maxAge is a duration in h, m and s, such as 168h`},
	{kind: "VMSnapshot", spec: `{vmName: web, quiesce: {timeout: "30"}}`, says: `spec.quiesce.timeout: Invalid value: "30": timeout is a duration in h, m and s, such as 5m`},
	{kind: "VMSnapshot", spec: `{vmName: web, quiesce: {timeout: 2h}}`, says: `spec.quiesce.timeout: Invalid value: "2h": timeout must be from 1s to 1h`},
	{kind: "VMSnapshot", spec: `{vmName: web}`, edit: `{"spec":{"vmName":"other"}}`, says: "spec.vmName: Forbidden: vmName" + theSnap},
	{kind: "VMSnapshot", spec: `{vmName: web}`, edit: `{"spec":{"memory":true}}`, says: "spec.memory: Forbidden: memory" + theSnap},
	{kind: "VMSnapshot", spec: `{vmName: web}`, edit: `{"spec":{"quiesce":{"timeout":"1m"}}}`, says: "spec.quiesce: Forbidden: quiesce" + theSnap},
	{kind: "VMSnapshot", spec: `{vmName: web}`, edit: `{"spec":{"description":"a"}}`, says: "spec.description: Forbidden: description" + theSnap},
	{kind: "VMSnapshot", spec: `{vmName: web}`, status: aSnapsID, edit: `{"status":{"snapshotId":"t"}}`, says: "status.snapshotId: Forbidden: status.snapshotId cannot be changed once it is set"},
	{kind: "VMSnapshot", spec: `{vmName: web}`, status: aSnapsID, edit: `{"status":{"vmId":"v2"}}`, says: "status.vmId: Forbidden: status.vmId cannot be changed once it is set"},

	{kind: "VMConsoleRequest", spec: aConsole, edit: `{"spec":{"lines":7}}`, says: "spec: Forbidden: spec cannot be changed; create another VMConsoleRequest"},

	{kind: "Cloud", spec: `{type: OpenStack, endpoint: "https://c.example.com", credentialsSecretRef: {name: c}, openstack: {securityGroups: {default: ["a\nb"]}}}`,
		says: `spec.openstack.securityGroups.default[0]: Invalid value: "a\nb": the name of a security group has no control characters`},
	{kind: "Cloud", spec: `{type: OpenStack, endpoint: "https://c.example.com", credentialsSecretRef: {name: c}, openstack: {network: {allowedAddresses: ["10.0.0.0/33"]}}}`,
		says: `spec.openstack.network.allowedAddresses[0]: Invalid value: "10.0.0.0/33": ` + allowedForm},
	{kind: "Cloud", spec: `{endpoint: c.example.com}`, says: `spec.endpoint: Invalid value: "c.example.com": endpoint must be a URL such as https://cloud.example.com/api, without user, query or fragment`},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", pollInterval: 2h}`, says: `spec.pollInterval: Invalid value: "2h": pollInterval must lie between 1s and 1h`},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", pollInterval: 1d}`, says: `spec.pollInterval: Invalid value: "1d": pollInterval is a duration in h, m and s, such as 30s`},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", settleTime: 1d}`, says: `spec.settleTime: Invalid value: "1d": settleTime is a duration in h, m and s, such as 2m`},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", settleTime: 2h}`, says: `spec.settleTime: Invalid value: "2h": settleTime must lie between 0s and 1h`},
	{kind: "Cloud", spec: `{endpoint: "http://c.example.com", credentialsSecretRef: {name: x}}`,
		says: "spec.endpoint: Invalid value: credentials are sent over https only: use an https endpoint, or set insecureAllowHTTP to true"},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {}, rest: {}}`,
		says: "spec.rest: Forbidden: rest holds settings of type REST: remove it, or set type to REST"},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", type: VSphere, credentialsSecretRef: {name: x}}`,
		says: "spec.vsphere: Invalid value: vsphere holds the settings of type VSphere: it is required there, and must be absent otherwise"},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", type: VSphere, vsphere: {folder: f}}`,
		says: "spec.credentialsSecretRef: Required value: a cloud of type VSphere needs credentials: set credentialsSecretRef"},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", openstack: {}}`,
		says: "spec.openstack: Invalid value: openstack holds the settings of type OpenStack: it is required there, and must be absent otherwise"},
	{kind: "Cloud", spec: `{endpoint: "https://c.example.com", type: OpenStack, openstack: {}}`,
		says: "spec.credentialsSecretRef: Required value: a cloud of type OpenStack needs credentials: set credentialsSecretRef"},
}

func TestValidationRule(t *testing.T) {
	all := cases{}
	for kind, spec := range map[string]string{"Cloud": restCloud, "VMClass": aClass} {
		all["a "+kind+" has a name of 64 characters: the message names the field"] = func(t *T) {
			output, err := env.Kubectl(t.Context(), object(kind, strings.Repeat("n", 64), spec), "create", "--dry-run=server", "-f", "-")
			t.Expect(err).To(HaveOccurred())
			t.Expect(output).To(HaveSuffix(nameRuleOf(kind) + "\n"))
		}
	}
	for _, r := range ruleCases {
		all[r.kind+" "+r.spec+r.status+r.edit] = r.check
	}
	all.run(t)
}

func nameRuleOf(kind string) string {
	return "metadata: Invalid value: a " + kind + "'s name must not be longer than 63 characters"
}

// check breaks the rule, and expects its message alone. Without a message, the rule allows the edit.
func (r ruleCase) check(t *T) {
	output, err := dryRun(t, r.kind, r.spec)
	if r.edit != "" {
		name, args := r.store(t), []string{"patch", strings.ToLower(r.kind), "--dry-run=server", "--type=merge", "-p", r.edit}
		if strings.HasPrefix(r.edit, `{"status"`) {
			args = append(args, "--subresource=status")
		}
		output, err = env.Kubectl(t.Context(), "", append(args, name)...)
	}
	if r.says == "" {
		t.Expect(err).NotTo(HaveOccurred(), output)
		return
	}
	t.Expect(err).To(HaveOccurred(), "it was accepted: %s", output)
	_, says, _ := strings.Cut(strings.TrimSpace(output), " is invalid: ")
	t.Expect(says).To(Equal(r.says), output)
}

// store creates the object of a case, which the operator leaves alone.
func (r ruleCase) store(t *T) (name string) {
	var obj unstructured.Unstructured
	t.Expect(yaml.Unmarshal([]byte(object(r.kind, "", r.spec)), &obj.Object)).To(Succeed())
	obj.SetGenerateName("rule-")
	obj.SetNamespace("default")
	obj.SetAnnotations(map[string]string{pcapi.PausedAnnotation: "true"})
	t.Expect(env.Client.Create(t.Context(), &obj)).To(Succeed())
	t.cleanup(func(ctx context.Context) { t.Expect(env.Client.Delete(ctx, &obj)).To(Succeed()) })
	if r.status != "" {
		status, err := yaml.YAMLToJSON([]byte("status: " + r.status))
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(env.Client.Status().Patch(t.Context(), &obj, client.RawPatch("application/merge-patch+json", status))).To(Succeed())
	}
	return obj.GetName()
}

func object(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: %s\nmetadata:\n  name: %q\nspec: %s\n", kind, name, spec)
}

func TestEachValidationRuleHasACase(t *testing.T) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatalf("ModuleRoot: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the CRDs: %v, %v", files, err)
	}
	said := nameRuleOf("Cloud") + "\n" + nameRuleOf("VMClass") + "\n"
	allowed := 0
	for _, r := range ruleCases {
		if said += r.says + "\n"; r.says == "" {
			allowed++
		}
	}
	rules := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("ReadFile: %v", err)
		}
		var crd any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, message := range messagesOf(crd) {
			rules++
			if !strings.Contains(said, ": "+message+"\n") {
				t.Errorf("%s: no case breaks the rule %q", filepath.Base(file), message)
			}
		}
	}
	if broken := len(ruleCases) + 2 - allowed; rules != broken {
		t.Errorf("%d rules, %d cases that break one", rules, broken)
	}
}

// messagesOf returns the messages of all validation rules inside a value.
func messagesOf(value any) (messages []string) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			messages = append(messages, messagesOf(each)...)
		}
	case map[string]any:
		rules, _ := value["x-kubernetes-validations"].([]any)
		for _, rule := range rules {
			message, _ := rule.(map[string]any)["message"].(string)
			messages = append(messages, message)
		}
		for _, each := range value {
			messages = append(messages, messagesOf(each)...)
		}
	}
	return messages
}
