use motet::time::Duration;

use super::floors::{DenseFloor, Shape};
use super::joined::joined;

const LIMIT: Duration = Duration::from_secs(super::JOIN_S);

#[test]
fn a_room_full_of_motes_joins() {
    for (shape, seed) in [(Shape::SmallRoom, 1), (Shape::Grid, 2)] {
        let floor = DenseFloor::draw(shape, seed);
        let joined = joined(floor.network(seed), LIMIT).expect("a mesh");
        assert_eq!(joined.missing, "", "{shape:?}, seed {seed}");
    }
}
