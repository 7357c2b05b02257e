// Package external is the lifecycle of a Kubernetes object that is backed by one
// resource in a cloud: claim, look, create, adopt, detect loss, delete,
// confirm, orphan and observe-only, under the brake.
//
// A kind supplies what differs (Kind). The protocol, which every kind has, is
// described in docs/design/create-protocol.md.
//
// A Lifecycle has an observer, which reads, a planner, which decides, and an
// executor, which runs the steps. All three use Outcomes, and the executor uses
// the observer.
//
//	kind.go         what a kind supplies
//	lifecycle.go    the lifecycle and its options
//	observation.go  what a reconcile knows
//	observe.go      what a reconcile reads
//	proof.go        what proves that a resource is gone
//	plan.go         what is to be done (pure)
//	steps.go        the steps
//	claim.go        the claim that an object must have
//	operation.go    changes that the cloud works on
//	outcomes.go     how calls that fail, and waits, end a reconcile
//	forecast.go     what the reconciles that follow are going to do (pure)
//	approval.go     plans that wait for an approval
//	status.go       the Created and Deleting conditions (pure)
//	queue.go        how requests share workers
//	vm.go           the VM that objects of other kinds refer to
package external
