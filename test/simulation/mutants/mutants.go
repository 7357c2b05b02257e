package main

// mutant is a bug that is put into the code.
type mutant struct {
	// name says what is wrong.
	name string
	// file has the text old, which is replaced by new.
	file, old, new string
	// caught is the invariant that does not hold then.
	caught string
}

const (
	external = "internal/external/"
	vm       = "internal/controller/vm/"
)

// mutants are the bugs that the simulation has to catch.
var mutants = []mutant{
	{"the create is sent before the claim is stored", external + "steps.go",
		"if err := reconciler.Claim(ctx, l.Client, obj, l.Options.Finalizer, ClaimAnnotations(name, o.Cloud)); err != nil {", "if err := error(nil); err != nil {", ""},
	{"the settle time is ignored before a second create", external + "plan.go", "case o.SettleTimeLeft > 0 && !repeatable:", "case false:", ""},
	{"a create is repeated without a look", external + "plan.go", "case !o.Looked:\n\t\treturn l.Do(l.Steps.Look), true\n\tcase len(o.Candidates) > 0 && !repeatable:", "case len(o.Candidates) > 0 && !repeatable:", ""},
	{"an object is released without a look at what its create made", external + "plan.go", "case !o.Looked:\n\t\treturn l.Do(l.Steps.Look)\n\tcase len(o.Candidates) > 0:\n\t\treturn l.End(reconciler.Stalled(pcapi.BlockedReason", "case len(o.Candidates) > 0:\n\t\treturn l.End(reconciler.Stalled(pcapi.BlockedReason", ""},
	{"an object is released before the settle time of its create", external + "plan.go", "case o.SettleTimeLeft > 0:\n\t\treturn l.End(reconciler.Wait(o.SettleTimeLeft, pcapi.RequestedReason,", "case false:\n\t\treturn l.End(reconciler.Wait(o.SettleTimeLeft, pcapi.RequestedReason,", ""},
	{"a deletion is not confirmed", external + "plan.go", "steps := append([]reconciler.Step[T, S]{l.Steps.ConfirmGone}, l.kind.Leftovers(obj, obs)...)", "steps := l.kind.Leftovers(obj, obs)", ""},
	{"a duplicate is not deleted", external + "plan.go", "return l.Do(l.Steps.Adopt, l.Steps.DeleteDuplicate), true", "return l.Do(l.Steps.Adopt), true", ""},
	{"an uncertain error counts as a refusal", external + "steps.go", "if cause == nil && !cloud.Uncertain(err) && !reconciler.IsStalled(err) {", "if cause == nil && !reconciler.IsStalled(err) {", ""},
	{"a claim is removed though another manager may have acted on it", external + "steps.go", "case !l.alone(): // another manager may have acted on the claim", "case false:", ""},
	{"what was created is not remembered", external + "steps.go", "l.Tracker.Created(uid, id, o.Now)\n", "\n", ""},
	{"a deletion counts as complete when it is accepted", external + "steps.go", "case err != nil && l.OnDemand:\n\t\treturn l.outcomeOf(obj, o, l.Backoff, err)\n\tcase err != nil:\n\t\treturn l.Failed(obj, o, err)\n\t}\n\tl.read(obj, obs, r)", "case err != nil && l.OnDemand:\n\t\treturn l.outcomeOf(obj, o, l.Backoff, err)\n\tcase err != nil:\n\t\treturn l.Failed(obj, o, err)\n\tdefault:\n\t\to.Gone = true\n\t\treturn nil\n\t}\n\tl.read(obj, obs, r)", ""},
	{"every answer that a server does not exist is proof", external + "observe.go", "return o.Looked\n}", "return o.Looked || deleting || true\n}", ""},
	{"an event of a server enqueues nobody", vm + "watch.go", "for _, ref := range e.Refs {", "for _, ref := range e.Refs[:0] {", ""},
	{"a process that has lost the lease goes on", "internal/reconciler/reconciler.go", "func (r *Reconciler[T, S]) leading() bool { return r.Leading == nil || r.Leading() }", "func (r *Reconciler[T, S]) leading() bool { return true }", ""},
}
