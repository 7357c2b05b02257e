// Package faults kills the operator, cuts off its calls and gives it false
// answers, and checks that nothing is created twice, lost or wrongly deleted.
//
// The manager runs as a process of its own, between two proxies: one in front of
// a real API server, one in front of the mock cloud. Every call that changes
// something passes one gate, which numbers the calls and can hold any of them
// while the manager is killed. The ledger of the mock cloud says what took effect.
//
//	gate.go        numbers effects; holds one, drops it or answers in its place
//	proxy.go       the two proxies
//	world.go       all that one run needs, isolated from other runs
//	managers.go    the processes of the manager: starts, leaders and kills
//	recorder.go    every status that the API server showed
//	invariants.go  what must hold in every run
//	groups.go      the same for VmGroups
//	networks.go    the same for Networks
//	snapshots.go   the same for VMSnapshots
//	classes.go     VMs with a class, and with user data
//	disks.go       VMs with disks
//	tags.go        VMs with tags
//	placement.go   VMs with a zone and an anti-affinity
//	interfaces.go  VMs with several interfaces and a static address
//	restarts.go    restarts of VMs, and their power states
//	reverts.go     reverts of VMs to a VMSnapshot
//	approvals.go   VMs that wait for an approval
//	scenario.go    what a user does, in steps, and the kills in between
//	steps.go       the steps
//	matrix.go      which scenarios run on which clouds
//	vsphere.go     the same on a vCenter
//	replay.go      traces that the simulation has recorded
//	replay_calls.go  the calls that a trace holds, answers or delays
//	replay_names.go  the names of these calls
//	replay_actions.go  what users, the cloud and the manager do in a trace
//	quirks.go      scenarios on clouds with random quirks, and random kills
//	others.go      other clients of the API server, strangers in the cloud, and gateways
//	hostile.go     a cloud beside that of a world, whose answers take memory
//	hostile_cases.go  these answers
//
// Beside a cloud that turns hostile, the memory of the manager is measured.
//
// Each case is a subtest, and -run makes only the runs of the cases that it
// selects. By default a selection of all cases runs, in about ten minutes.
// FAULTS=sample runs a third of the cases, with a third of the kills of each of
// the matrix, others each time: to repeat a failure, select its case with -run, without FAULTS.
// FAULTS=full runs all cases; any other value of FAULTS runs those scenarios of the matrix
// whose name contains it. FAULTS_SEED repeats what was random: cases of a sample, kills and quirks.
// With -v each run is reported as it ends.
package faults
