// Positions follow from a token's place alone.
const POSITIONS = false;

fn positions_at(ix: LaneU) -> LaneI {
    return LaneI();
}
