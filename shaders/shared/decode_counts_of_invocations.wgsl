// One sum of gates to an invocation, for few splits: a kernel without barriers is dear on no device.
fn store_counts(task: Task, lane: u32) {
    for (var r = 0u; r < ROWS; r++) {
        let row = row_of(task, r);
        if (row.exists) {
            let at = place(params.gates, task.batch, row.token, row.head) / 4u;
            stored_gates[at + task.split * WG_SIZE + lane] = vec4(f32(whole[r]), fraction[r], 0.0, 0.0);
        }
    }
}
