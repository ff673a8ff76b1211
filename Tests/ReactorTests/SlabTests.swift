import Testing
import Wire

@Suite("A slab")
struct SlabTests {
  @Test("knows each value by its number until it is removed, and gives the number again")
  func numbers() {
    var slab = Slab<String>()
    let (a, b) = (slab.insert("a"), slab.insert("b"))
    #expect(slab.count == 2 && slab[a] == "a" && slab[b] == "b")
    #expect(slab.remove(a) == "a")
    #expect(slab.count == 1 && slab[a] == nil && slab.indices == [b])
    let c = slab.insert("c")
    #expect(c == a && slab[c] == "c" && slab.indices == [c, b])
  }

  @Test("gives a number once, however often it is removed")
  func removedTwice() {
    var slab = Slab<Int>()
    let first = slab.insert(1)
    slab.remove(first)
    #expect(slab.remove(first) == nil && slab.remove(7) == nil && slab.remove(-1) == nil && slab[7] == nil)
    #expect(slab.insert(2) != slab.insert(3))
    #expect(slab.count == 2)
  }

  @Test("lets a value be changed in place, and no number be taken that it hasn't given")
  func changed() {
    var slab = Slab<[Int]>()
    let index = slab.insert([])
    slab[index]?.append(1)
    #expect(slab[index] == [1])
    slab[index] = nil
    slab[index] = [2]
    slab[5] = [3]
    #expect(slab.count == 0 && slab.insert([4]) == index)
  }
}
