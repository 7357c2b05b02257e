package main

// mutant is a bug that is put into the code.
type mutant struct {
	// name says what is wrong.
	name string
	// file has the text old, which is replaced by new.
	file, old, new string
}

const (
	external   = "internal/external/"
	vm         = "internal/controller/vm/"
	network    = "internal/controller/network/"
	vmgroup    = "internal/controller/vmgroup/"
	vmsnapshot = "internal/controller/vmsnapshot/"
	inventory  = "internal/inventory/"
	engine     = "internal/reconciler/"
)

// mutants are the bugs that the simulation has to catch.
var mutants = []mutant{
	{"the create is sent before the claim is stored", external + "steps.go",
		"if err := reconciler.Claim(ctx, e.Client, obj, e.Finalizer, ClaimAnnotations(name, o.Cloud)); err != nil {", "if err := error(nil); err != nil {"},
	{"the settle time is ignored before a second create", external + "plan.go", "case o.SettleTimeLeft > 0 && !repeatable:", "case false:"},
	{"a create is repeated without a look", external + "plan.go", "case !o.Looked, o.Incomplete && !repeatable:\n\t\treturn p.Do(p.Steps.Look), true\n\tcase len(o.Candidates) > 0 && !repeatable:", "case len(o.Candidates) > 0 && !repeatable:"},
	{"an object is released without a look at what its create made", external + "plan.go", "case !o.ShowsAbsence():\n\t\treturn p.Do(p.Steps.Look)\n\tcase len(o.Candidates) > 0:\n\t\treturn p.End(reconciler.Stalled(pcapi.BlockedReason", "case len(o.Candidates) > 0:\n\t\treturn p.End(reconciler.Stalled(pcapi.BlockedReason"},
	{"an object is released before the settle time of its create", external + "plan.go", "case o.SettleTimeLeft > 0:\n\t\treturn p.End(reconciler.Wait(o.SettleTimeLeft, pcapi.RequestedReason,", "case false:\n\t\treturn p.End(reconciler.Wait(o.SettleTimeLeft, pcapi.RequestedReason,"},
	{"a deletion is not confirmed", external + "plan.go", "steps := append([]reconciler.Step[T, S]{p.Steps.ConfirmGone}, p.kind.Leftovers(obj, obs)...)", "steps := p.kind.Leftovers(obj, obs)"},
	{"a duplicate of a recorded server is not deleted", vm + "plan.go", "case len(obs.Duplicates) > 0:", "case false:"},
	{"an uncertain error counts as a refusal", external + "steps.go", "if cause == nil && !cloud.Uncertain(err) && !reconciler.IsStalled(err) && !displaced {", "if cause == nil && !reconciler.IsStalled(err) && !displaced {"},
	{"what was created is not remembered", external + "steps.go", "e.Tracker.Created(uid, id, o.Now)\n", "\n"},
	{"a deletion counts as complete when it is accepted", external + "steps.go", "case err != nil && e.OnDemand:\n\t\treturn e.outcomeOf(obj, o, e.Backoff, err)\n\tcase err != nil:\n\t\treturn e.Failed(obj, o, err)\n\t}\n\te.observer.read(obj, obs, r)\n\tif o.Gone {", "case err != nil && e.OnDemand:\n\t\treturn e.outcomeOf(obj, o, e.Backoff, err)\n\tcase err != nil:\n\t\treturn e.Failed(obj, o, err)\n\tdefault:\n\t\to.Gone = true\n\t\treturn nil\n\t}\n\te.observer.read(obj, obs, r)\n\tif o.Gone {"},
	{"every answer that a server does not exist is proof", external + "proof.go", "return o.Looked && o.SettleTimeLeft == 0", "return o.Looked || deleting || true"},
	{"an event of a server enqueues nobody", vm + "watch.go", "for _, ref := range e.Refs {", "for _, ref := range e.Refs[:0] {"},
	{"the key of a create differs in each try", vm + "resource.go", "IdempotencyKey: string(vm.UID), First", "IdempotencyKey: string(vm.UID) + obs.Now.String(), First"},
	{"a listing that fails is read as empty", inventory + "listing.go", "next, err := readPage(ctx, from, cloud.ListServers{Limit: PageSize, Marker: marker}, in)\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}", "next, _ := readPage(ctx, from, cloud.ListServers{Limit: PageSize, Marker: marker}, in)"},
	{"a listing ends at a page that fails", inventory + "listing.go", "\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tsnap.Pages++", "\t\tif err != nil && snap.Pages == 0 {\n\t\t\treturn nil, err\n\t\t}\n\t\tsnap.Pages++"},
	{"a report of a server enqueues nobody", inventory + "watch.go", "event := i.replace(snap, append(changed, ids...), nil)", "event := i.replace(snap, ids, nil)"},
	{"reports of a cloud are dropped", inventory + "watch.go", "for s := range change.Servers {", "for s := range change.Servers[:0] {"},
	{"events of the inventory are lost", inventory + "notifier.go", "for _, fn := range n.events {", "for _, fn := range n.events[:0] {"},
	{"a wait ends with no further reconcile", engine + "status.go", "result.RequeueAfter = lengthened(wait.After)", "result.RequeueAfter = 0 * wait.After"},
	{"a conflict ends with no further reconcile", engine + "status.go", "return ctrl.Result{RequeueAfter: staleDelay}, nil", "return ctrl.Result{}, nil"},
	{"an error ends with no further reconcile", engine + "status.go", "\t\terr = outcome\n", ""},
	{"the claim is stored whatever changed meanwhile", engine + "metadata.go", "patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})", "patch := client.MergeFrom(base)"},
	{"the 404 of a gateway proves that a deleted server is gone", external + "proof.go", "case deleted(obj) && cloud.Is(err, cloud.NotFound):", "case deleted(obj):"},
	{"an answer that was lost is not remembered", external + "steps.go", "e.Tracker.Unknown(obj.GetUID(), e.Clock())\n\tif e.OnDemand {", "if e.OnDemand {"},
	{"an operation that failed counts as running", external + "operation.go", "case !state.Done:", "case !state.Done || state.Err != nil:"},
	{"a change by hand is not corrected", vm + "plan.go", "changes := k.planChanges(vm, obs, update)", "changes := k.planChanges(vm, obs, cloud.Update{})"},
	{"a group counts one member too many as right", vmgroup + "moves.go", "if surplus := len(kept) - desired; surplus > 0 {", "if surplus := len(kept) - desired; surplus > 1 {"},
	{"a group that rolls keeps members of older revisions", vmgroup + "moves.go", "replaced = append(replaced, vm)\n", "\n"},
	{"a group never creates the members that wait for others to go", vmgroup + "moves.go", "m.create = max(0, min(missing, room))", "m.create = max(0, min(missing, room-1))"},
	{"a lost VM is created again", external + "plan.go", "case o.Gone:\n\t\treturn p.End(p.lost(record.ID))", "case o.Gone:\n\t\treturn p.kind.PlanCreate(obj, obs)"},
	{"a VM is not lost as long as nobody edits it", external + "proof.go", "return o.Looked && o.SettleTimeLeft == 0", "return deleted(obj) && o.Looked && o.SettleTimeLeft == 0"},
	{"a lost member stays", vmgroup + "moves.go", "case vm.Status.State == pcapi.VMStateLost:\n\t\t\tm.remove = append(m.remove, vm)", "case vm.Status.State == pcapi.VMStateLost:"},
	{"a VM does not learn that its Network is there", vm + "network.go", "if stateOf(e.ObjectOld) != stateOf(e.ObjectNew) {", "if stateOf(e.ObjectOld) != stateOf(e.ObjectOld) {"},
	{"a gateway is not changed", network + "plan.go", "case len(asked(difference(net, n), n)) > 0:", "case false:"},
	{"a plan that nobody approved is carried out", external + "approval.go", "case decision.Wait != nil:", "case false:"},
	{"a deletion needs no approval", external + "approval.go", "if !approvable ||", "if !approvable || deleted(obj) ||"},
	{"a claim is not written again before another create", external + "steps.go", "if held && (only || e.kind.Repeatable(obj, obs)) {", "if held || !held || only {"},
	{"a claim is not renewed although another manager acts", external + "steps.go", "only := o.Fresh || e.alone() && e.Tracker.AllRefused(obj.GetUID())", "only := true"},
	{"a claim that another manager renews counts from its first observation", "internal/pending/tracker.go", "case renewed != \"\" && r.renewed != renewed:", "case false:"},
	{"a process that may not act reports conditions", engine + "status.go", "\tif acting {\n\t\tsetObservedGeneration", "\tif true {\n\t\tsetObservedGeneration"},
	{"a process that starts ignores creates of the one before", external + "proof.go", "since := w.Tracker.UnknownSince(obj.GetUID(), o.ClaimedAt)", "since := w.Tracker.UnknownSince(obj.GetUID(), time.Time{})"},
	{"any listing shows what a create made", vm + "servers.go", "obs.Looked = snapshot != nil && !snapshot.Begun.Before(obs.Horizon)", "obs.Looked = snapshot != nil"},
	{"a VM that waits for its Network forgets its create", vm + "plan.go", "case !obs.ShowsAbsence():\n\t\treturn k.Do(k.Steps.Look)\n\tcase obs.SettleTimeLeft > 0:\n\t\treturn k.End(reconciler.Wait(obs.SettleTimeLeft, pcapi.OutcomeUnknownReason,\n\t\t\t\"a create may", "case false:\n\t\treturn k.End(reconciler.Wait(obs.SettleTimeLeft, pcapi.OutcomeUnknownReason,\n\t\t\t\"a create may"},
	{"a server that somebody stopped stays stopped", vm + "field/power.go", "case has == cloud.StateStopped, has == cloud.StateSuspended:", "case has == cloud.StateSuspended:"},
	{"an approval counts for any plan", "internal/approval/approval.go", "if hash != recorded.Hash {", "if hash == \"\" {"},
	{"a status that was written late is not corrected", engine + "status.go", "left := r.unanswered.left(obj.GetUID(), lateWrite)\n", "left := time.Duration(0)\n"},
	{"a status that an earlier process wrote late is not corrected", engine + "status.go", "since < lateWrite {", "since < 0 {"},
	{"a listing proves that a new server is gone whose deletion is accepted", "internal/pending/deletion.go", "return r.answer == Gone || r.answer == Accepted && r.listed", "return r.answer >= Accepted"},
	{"a listing that lags behind proves that a new server is gone", external + "proof.go", "return o.Looked && o.SettleTimeLeft == 0", "return o.Looked"},
	{"labels of another cluster count", inventory + "view.go", "if s.owner.uid == uid && i.overlay.recorded(s.id) == nil && s.owner.cluster == cluster {", "if s.owner.uid == uid && i.overlay.recorded(s.id) == nil {"},
	{"orphans of another cluster are deleted", inventory + "snapshot.go", "if by == nil || by.cluster != cluster || uids[by.uid]", "if by == nil || uids[by.uid]"},
	{"an id on record is proof enough for a deletion", vm + "plan.go", "case !obs.Owned:\n\t\treturn foreign(server)\n", ""},
	{"an id on record is proof enough for a change", vm + "plan.go", "case !obs.Owned && (len(update) > 0 ||", "case false && (len(update) > 0 ||"},
	{"a deletion does not compare names", vm + "plan.go", "case obs.Capabilities().Has(cloud.Labels), cloud.AlikeNames(server.Name, name):", "case true, cloud.AlikeNames(server.Name, name):"},
	{"a claim that a user wrote is proof", vm + "names.go", "if obs.ClaimProved && nameProves(obs.Capabilities()) {", "if nameProves(obs.Capabilities()) {"},
	{"a server that another VM has is imported", vm + "rivals.go", "return !released(other) && (other.Status.VMID != \"\" || older(other, vm))", "return false"},
	{"another Cloud is another cloud", vm + "rivals.go", "same, err := tenancy.SameCloud(ctx, o.Client, obs.Cloud)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif index == serverIndex {", "same := []string{obs.Cloud}\n\tif index == serverIndex {"},
	{"imports need no permission", "internal/tenancy/imports.go", "return mayImport(spec.Imports, listed,", "return mayImport(pcapi.ImportPolicyAny, listed,"},
	{"a server of another cluster is imported", vm + "plan.go", "case obs.Foreign:\n", "case false:\n"},
	{"a name that the cloud changed is not found", vm + "names.go", "alike, chosen := obs.Inventory.NamedAlike(obs.Claimed), chosenFrom(vm, obs)", "alike, chosen := obs.Inventory.NamedAlike(obs.Claimed)[:0], chosenFrom(vm, obs)"},
	{"an imported id that the cloud uses again is labelled", vm + "plan.go", " && !replaced(vm, obs, server)\n}", "\n}"},
	{"a deletion is sent again without a look", external + "observe.go", "case o.Resource != nil && !w.askAgain(obj, o, id):", "case o.Resource != nil:"},
	{"a server beside one that is gone is left", vm + "servers.go", "if !obs.Owned && !vm.DeletionTimestamp.IsZero() && !keeps(vm) {", "if false {"},
	{"a snapshot of a create without an answer is not looked for", vmsnapshot + "resource.go", "obs.Candidates = cloud.OfOwner(found,", "_ = cloud.OfOwner(found,"},
	{"a revert is sent again without its key", vm + "revert.go", "IdempotencyKey: fmt.Sprintf(\"%s-revert-%d\", vm.UID, r.RequestedTime.UnixMicro()),", "IdempotencyKey: fmt.Sprintf(\"%s-revert-%s\", vm.UID, rev.Clock()),"},
	{"a revert without an answer is requested anew", vm + "revert.go", "case cloud.Uncertain(err):\n\t\treturn rev.uncertain(vm, err)\n\t}\n\tvm.Status.Revert = nil", "case cloud.Uncertain(err):\n\t}\n\tvm.Status.Revert = nil"},
	{"a create is given up when the manager stops", engine + "work.go", "cancelAfter(effects, stopGrace, cancelEffects)", "cancelEffects()"},
	{"a manager that stops does not record", engine + "work.go", "effects: effects, record: detached}", "effects: effects, record: ctx}"},
	{"a claim that somebody removed is not put back", engine + "metadata.go", "if r.ClaimOf == nil || deleting(obj) {", "if true {"},
	{"a claim in the status does not count without its finalizer", external + "claim.go", "case record.Claimed != \"\":", "case false:"},
	{"a VM without a claim is not looked for by its labels", external + "observe.go", "return w.kind.Look(ctx, obj, obs, \"\")", "return nil"},
	{"a claim is not known before its answer", external + "steps.go",
		"\te.Tracker.SetClaim(obj.GetUID(), pending.Claim{Name: name, Cloud: o.Cloud}) // the object may be gone before the answer\n\tif err := reconciler.Claim(ctx, e.Client, obj, e.Finalizer, ClaimAnnotations(name, o.Cloud)); err != nil {\n\t\te.Tracker.SetClaim(obj.GetUID(), before)\n\t\treturn err\n\t}\n",
		"\tif err := reconciler.Claim(ctx, e.Client, obj, e.Finalizer, ClaimAnnotations(name, o.Cloud)); err != nil {\n\t\treturn err\n\t}\n\te.Tracker.SetClaim(obj.GetUID(), pending.Claim{Name: name, Cloud: o.Cloud})\n\t_ = before\n"},
	{"a refused create proves that no earlier one took effect", external + "steps.go", "if !obs.External().Fresh {\n\t\tfor _, step", "if false {\n\t\tfor _, step"},
	{"a refused name is not checked before another create", vm + "plan.go", "case claimed && !unchecked(vm, obs) && obs.nameErr == nil && !k.names.allRefused(vm) && !nameDoubted(vm, obs):", "case claimed && !unchecked(vm, obs):"},
	{"a server is imported as the last listing has it", vm + "confirm.go", "server, err := k.Get(ctx, obs, listed.ID)\n", "server, err := listed, error(nil)\n"},
	{"a read of a server that the listing lacks is not recorded", external + "observe.go", "\t\t\to.Inventory.RecordUnlisted(id)\n", ""},
	{"an incomplete listing proves that a server is gone", external + "proof.go", "case o.Incomplete && !deleting && !cloud.Is(err, cloud.NotFound):", "case false:"},
	{"an answer to a create that names another server is not confirmed", vm + "resource.go", "if err == nil && doubtfulAnswer(vm, obs, server, before) {", "if false {"},
	{"a server that existed before a create is that of the create", vm + "answer.go", "existed := obs.Inventory.Existed(before, server)", "existed := false"},
	{"an object is released although no other server has its name", vm + "resource.go", "return []step{k.vmSteps.confirmName}", "return nil"},
	{"an object with the claim of another one is not released", external + "plan.go", "if p.copiedAlone(o, record) {", "if false {"},
	{"the claim of another object hides a server", external + "plan.go", "return o.Copied && record.id() == \"\" && !o.Proved() && searched", "return o.Copied && record.id() == \"\" && (searched || !searched)"},
	{"a server that another VM may have does not hold up a deletion", vm + "plan.go", "case vm.Status.VMID == \"\" && len(obs.contested) > 0:", "case false:"},
	{"an id that the cloud gives again is not recognised", external + "proof.go", "return later || w.Tracker.Reused(obj.GetUID(), identity.CreatedAt)", "return later && false"},
	{"an id that the cloud gives again is not recognised after a restart", external + "proof.go", "return later || w.Tracker.Reused(obj.GetUID(), identity.CreatedAt)", "return w.Tracker.Reused(obj.GetUID(), identity.CreatedAt) && (later || !later)"},
}
