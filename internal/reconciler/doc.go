// Package reconciler is the engine that every kind's controller runs on: one
// reconcile of one object, from the cached read to a single status patch.
//
//	Get -> paused? -> Observe -> Plan -> steps -> Report -> finish
//
// A kind supplies Observe, Plan, the steps and Report (Kind). The engine owns
// the rest. Each reconcile ends in an outcome, which is nil or an error: a
// WaitError, a BlockedError, a StalledError or any other error. Only finish
// turns an outcome into a result and into the Ready, Reconciling and Stalled
// conditions, and only finish writes the status.
//
//	reconciler.go  one reconcile, and what a kind supplies
//	work.go        the contexts of a reconcile: what ends when the manager stops
//	owned.go       objects of other managers
//	step.go        steps and plans
//	trace.go       the span of a reconcile
//	history.go     the last steps of objects, for diagnostics
//	outcome.go     how a reconcile can end
//	status.go      summary conditions and the result
//	patch.go       the status patch and its guard
//	rejected.go    statuses that the API server refuses
//	events.go      what is recorded and logged of a changed status
//	recorder.go    how many events are recorded
//	writestatus.go a part of the status that is stored before the end, such as a claim
//	metadata.go    claims and releases: finalizer and annotations
//	releases.go    objects that were released a moment ago
//	abandoned.go   objects that Kubernetes removed in spite of their claim
//	forget.go      what is dropped of objects that are deleted
//	predicates.go  which updates of an object enqueue it
package reconciler
