use super::joined::{LIMIT, joined};
use crate::net::dense::{DenseFloor, Shape};

#[test]
fn a_room_full_of_motes_joins() {
    for (shape, seed) in [(Shape::SmallRoom, 1), (Shape::Grid, 2)] {
        let floor = DenseFloor::draw(shape, seed);
        let joined = joined(floor.network(seed), LIMIT).expect("a mesh");
        assert_eq!(joined.missing, "", "{shape:?}, seed {seed}");
    }
}
